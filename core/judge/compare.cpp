// Stage by stage: what is equal, what differs and where, how far numbers lie apart.
#include "judge/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/utf8.h"
#include "judge/compare_answers.h"
#include "judge/distance.h"

namespace jemm {
namespace {

/// True for details that the reference words; those of its libraries are compared by type alone.
bool is_own_wording(std::string_view detail) {
  constexpr std::string_view kBeginnings[] = {"UNSUPPORTED",
                                              "question '",
                                              "question \"",
                                              "images must",
                                              "image ",
                                              "no questions",
                                              "unsupported question type",
                                              "choice question needs",
                                              "score question needs",
                                              "request body must be an object",
                                              "invalid request size"};
  return std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                     [&](std::string_view beginning) { return detail.starts_with(beginning); });
}

/// Not a refusal but a crash: of the server, or over a typed video pad in a request with images.
bool is_crash(const ErrorRecord& error) {
  return error.http >= 500 || error.detail == "'NoneType' object is not an iterator";
}

/// The reference's server takes a body with NUL bytes at the front for UTF-16 or UTF-32.
bool is_other_encoding(const ErrorRecord& error) {
  return error.type == "UnicodeDecodeError" && !error.detail.starts_with("'utf-8'");
}

/// Up to `count` code points from byte `offset` on, for a message.
std::string excerpt(std::string_view text, std::size_t offset) {
  constexpr std::size_t kCodePoints = 40;
  while (offset > 0 && offset < text.size() && (text[offset] & 0xC0) == 0x80) --offset;
  text = text.substr(std::min(offset, text.size()));
  const std::string_view head = first_code_points(text, kCodePoints);
  return fmt::format("\"{}\"{}", head, head.size() < text.size() ? "..." : "");
}

class Comparer {
 public:
  Comparer(const CaseRecord& reference, const CaseRecord& observed, const StageSet& stages)
      : reference_(reference), observed_(observed), stages_(stages) {}

  CaseComparison run() {
    result_.case_id = reference_.id;
    result_.refused = reference_.error.has_value();
    if (!compare_acceptance() || result_.refused) return std::move(result_);
    result_.n_images = reference_.images.size();
    compare_images();
    if (reference_.has_questions) compare_questions();
    compare_tensors();
    compare_response();
    return std::move(result_);
  }

 private:
  bool compare_acceptance();
  void compare_refusals(const ErrorRecord& ours, const ErrorRecord& theirs);
  void compare_images();
  void compare_questions();
  void compare_question(int index, const QuestionRecord& ours, const QuestionRecord& theirs);
  void compare_candidates(int index, const QuestionRecord& ours, const QuestionRecord& theirs);
  void compare_prompt(int index, const QuestionRecord& ours, const QuestionRecord& theirs);
  void compare_tokens(int index, const QuestionRecord& ours, const QuestionRecord& theirs);
  void compare_positions(int index, const QuestionRecord& ours, const QuestionRecord& theirs);
  void compare_logits(int index, const QuestionRecord& ours, const QuestionRecord& theirs);
  void compare_tensors();
  void add_unknown_tensors(const CaseRecord& side);
  void compare_response();

  bool asked(StageKind kind) const { return stages_.has(kind); }
  void count(StageId stage) { result_.compared.push_back(stage); }
  void add(int question, StageId stage, FindingKind kind, const std::string& what,
           const std::string& redacted = "");
  void equal_text(StageKind kind, int image, std::string_view what, const std::string& ours,
                  const std::string& theirs);
  template <typename Value>
  void compare_values(int question, StageId stage, const std::vector<Value>& ours,
                      const std::vector<Value>& theirs);

  const CaseRecord& reference_;
  const CaseRecord& observed_;
  const StageSet& stages_;
  CaseComparison result_;
};

/// `redacted` is left out where `what` quotes nothing.
void Comparer::add(int question, StageId stage, FindingKind kind, const std::string& what,
                   const std::string& redacted) {
  Finding finding;
  finding.case_id = reference_.id;
  finding.question = question;
  const auto index = static_cast<std::size_t>(question);
  if (question >= 0 && index < reference_.questions.size()) {
    finding.question_id = reference_.questions[index].id;
  }
  finding.stage = stage;
  finding.kind = kind;
  finding.what = what;
  finding.what_redacted = redacted.empty() ? what : redacted;
  result_.findings.push_back(std::move(finding));
}

/// False when one side accepts and the other refuses: then nothing else can be compared.
bool Comparer::compare_acceptance() {
  constexpr StageId kStage{StageKind::kAccept};
  if (asked(kStage.kind)) count(kStage);
  if (!observed_.body.empty() && observed_.body != reference_.body) {
    add(-1, kStage, FindingKind::kDiffers, "the request itself is another one");
  }
  const auto& ours = observed_.error;
  const auto& theirs = reference_.error;
  if (ours && theirs) {
    compare_refusals(*ours, *theirs);
  } else if (ours) {
    add(-1, kStage, FindingKind::kDiffers,
        fmt::format("refused with {}: {}; the reference answers", ours->type, ours->detail),
        fmt::format("refused with {}; the reference answers", ours->type));
  } else if (theirs) {
    add(-1, kStage, FindingKind::kDiffers,
        fmt::format("answered; the reference refuses with {}: {}", theirs->type, theirs->detail),
        fmt::format("answered; the reference refuses with {}", theirs->type));
  }
  return ours.has_value() == theirs.has_value();
}

void Comparer::compare_refusals(const ErrorRecord& ours, const ErrorRecord& theirs) {
  constexpr StageId kStage{StageKind::kAccept};
  if (is_crash(theirs) || is_other_encoding(theirs)) return;
  if (ours.http != theirs.http || ours.type != theirs.type) {
    add(-1, kStage, FindingKind::kDiffers,
        fmt::format("refused with {} {}, not {} {}", ours.http, ours.type, theirs.http,
                    theirs.type));
  } else if (is_own_wording(theirs.detail) && ours.detail != theirs.detail) {
    add(-1, kStage, FindingKind::kDiffers,
        fmt::format("refused with \"{}\", not \"{}\"", ours.detail, theirs.detail),
        "refused with another detail");
  }
}

void Comparer::equal_text(StageKind kind, int image, std::string_view what, const std::string& ours,
                          const std::string& theirs) {
  if (theirs.empty() || !asked(kind)) return;
  count({kind});
  if (ours == theirs) return;
  const FindingKind fault = ours.empty() ? FindingKind::kMissing : FindingKind::kDiffers;
  add(-1, {kind}, fault, fmt::format("image {}: {} is {}, not {}", image, what, ours, theirs));
}

void Comparer::compare_images() {
  const auto& ours = observed_.images;
  const auto& theirs = reference_.images;
  const bool is_asked =
      asked(StageKind::kImageRgb) || asked(StageKind::kImageGrid) || asked(StageKind::kImagePixels);
  if (!is_asked || !reference_.has_questions) return;
  if (ours.size() != theirs.size()) {
    add(-1, {StageKind::kImageRgb},
        ours.size() < theirs.size() ? FindingKind::kMissing : FindingKind::kExtra,
        fmt::format("{} images, not {}", ours.size(), theirs.size()));
    return;
  }
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    const int image = static_cast<int>(i);
    const auto size = [](const ImageRecord& record) {
      return fmt::format("{} x {}", record.width, record.height);
    };
    const auto grid = [](const ImageRecord& record) {
      const auto& [t, h, w] = record.grid_thw;
      return t == 0 ? "" : fmt::format("{} x {} x {}", t, h, w);
    };
    equal_text(StageKind::kImageRgb, image, "size", size(ours[i]), size(theirs[i]));
    equal_text(StageKind::kImageRgb, image, "rgb_sha256", ours[i].rgb_sha256, theirs[i].rgb_sha256);
    equal_text(StageKind::kImageGrid, image, "grid_thw", grid(ours[i]), grid(theirs[i]));
    equal_text(StageKind::kImagePixels, image, "pixel_values_sha256", ours[i].pixel_values_sha256,
               theirs[i].pixel_values_sha256);
  }
}

void Comparer::compare_questions() {
  const auto& ours = observed_.questions;
  const auto& theirs = reference_.questions;
  constexpr StageId kStage{StageKind::kPrompt};
  const std::size_t n_both = std::min(ours.size(), theirs.size());
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    const int index = static_cast<int>(i);
    result_.questions.push_back({theirs[i].id, index});
    if (i >= n_both) {
      add(index, kStage, FindingKind::kMissing, "the question is not there");
    } else if (ours[i].id != theirs[i].id) {
      add(index, kStage, FindingKind::kUnmatched,
          fmt::format("another question stands in its place: \"{}\"", ours[i].id),
          "another question stands in its place");
    } else {
      compare_question(index, ours[i], theirs[i]);
    }
  }
  for (std::size_t i = n_both; i < ours.size(); ++i) {
    add(-1, kStage, FindingKind::kExtra, fmt::format("a further question: \"{}\"", ours[i].id),
        "a further question");
  }
}

void Comparer::compare_question(int index, const QuestionRecord& ours,
                                const QuestionRecord& theirs) {
  compare_candidates(index, ours, theirs);
  compare_prompt(index, ours, theirs);
  compare_tokens(index, ours, theirs);
  compare_positions(index, ours, theirs);
  compare_logits(index, ours, theirs);
}

void Comparer::compare_candidates(int index, const QuestionRecord& ours,
                                  const QuestionRecord& theirs) {
  if (ours.type != theirs.type) {
    add(index, {StageKind::kPrompt}, FindingKind::kDiffers,
        fmt::format("type {}, not {}", ours.type, theirs.type), "another type");
  }
  if (ours.candidates != theirs.candidates) {
    add(index, {StageKind::kPrompt}, FindingKind::kDiffers,
        fmt::format("{} candidates that are not the {} of the reference, or in another order",
                    ours.candidates.size(), theirs.candidates.size()));
  }
}

void Comparer::compare_prompt(int index, const QuestionRecord& ours, const QuestionRecord& theirs) {
  constexpr StageId kStage{StageKind::kPrompt};
  if (!theirs.prompt || !asked(kStage.kind)) return;
  if (!ours.prompt) return add(index, kStage, FindingKind::kMissing, "no prompt");
  count(kStage);
  if (*ours.prompt == *theirs.prompt) return;
  const auto [mine, yours] = std::mismatch(ours.prompt->begin(), ours.prompt->end(),
                                           theirs.prompt->begin(), theirs.prompt->end());
  const auto offset = static_cast<std::size_t>(mine - ours.prompt->begin());
  const std::string place = fmt::format("prompts of {} and {} bytes differ from byte {} on",
                                        ours.prompt->size(), theirs.prompt->size(), offset);
  add(index, kStage, FindingKind::kDiffers,
      fmt::format("{}: {}, not {}", place, excerpt(*ours.prompt, offset),
                  excerpt(*theirs.prompt, offset)),
      place);
}

void Comparer::compare_tokens(int index, const QuestionRecord& ours, const QuestionRecord& theirs) {
  constexpr StageId kStage{StageKind::kTokens};
  if (!theirs.token_ids || !asked(kStage.kind)) return;
  if (!ours.token_ids) return add(index, kStage, FindingKind::kMissing, "no token ids");
  count(kStage);
  if (*ours.token_ids == *theirs.token_ids) return;
  const auto [mine, yours] = std::mismatch(ours.token_ids->begin(), ours.token_ids->end(),
                                           theirs.token_ids->begin(), theirs.token_ids->end());
  const auto name = [](auto place, auto end) {
    return place == end ? std::string("the end") : fmt::format("{}", *place);
  };
  const std::string place =
      fmt::format("{} and {} tokens differ from token {} on", ours.token_ids->size(),
                  theirs.token_ids->size(), mine - ours.token_ids->begin());
  add(index, kStage, FindingKind::kDiffers,
      fmt::format("{}: {}, not {}", place, name(mine, ours.token_ids->end()),
                  name(yours, theirs.token_ids->end())),
      place);
}

void Comparer::compare_positions(int index, const QuestionRecord& ours,
                                 const QuestionRecord& theirs) {
  constexpr StageId kStage{StageKind::kPositions};
  if (!theirs.position_ids_sha256 || !asked(kStage.kind)) return;
  if (!ours.position_ids_sha256) return add(index, kStage, FindingKind::kMissing, "no positions");
  count(kStage);
  if (*ours.position_ids_sha256 == *theirs.position_ids_sha256) return;
  add(index, kStage, FindingKind::kDiffers,
      fmt::format("position_ids_sha256 is {}, not {}", *ours.position_ids_sha256,
                  *theirs.position_ids_sha256));
}

void Comparer::compare_logits(int index, const QuestionRecord& ours, const QuestionRecord& theirs) {
  constexpr StageId kStage{StageKind::kLogits};
  if (!theirs.logits || !asked(kStage.kind)) return;
  if (!ours.logits) return add(index, kStage, FindingKind::kMissing, "no logits");
  compare_values(index, kStage, *ours.logits, *theirs.logits);
}

template <typename Value>
void Comparer::compare_values(int question, StageId stage, const std::vector<Value>& ours,
                              const std::vector<Value>& theirs) {
  count(stage);
  if (ours.size() != theirs.size()) {
    return add(question, stage, FindingKind::kDiffers,
               fmt::format("{} values, not {}", ours.size(), theirs.size()));
  }
  if (theirs.empty()) return add(question, stage, FindingKind::kMissing, "no values");
  for (const auto* side : {&ours, &theirs}) {
    const auto bad =
        std::find_if(side->begin(), side->end(), [](Value value) { return !std::isfinite(value); });
    if (bad == side->end()) continue;
    return add(question, stage, FindingKind::kNotFinite,
               fmt::format("value {} of {} is {}{}", bad - side->begin(), side->size(), *bad,
                           side == &theirs ? " in the reference" : ""));
  }
  const TensorDistance distance =
      tensor_distance(std::span<const Value>(ours), std::span<const Value>(theirs));
  if (!std::isfinite(distance.rms_ratio)) {
    return add(question, stage, FindingKind::kNotFinite,
               "the RMS ratio is infinite: the reference is all zeros");
  }
  result_.values.push_back({question, stage, distance.rms_ratio, distance.max_abs});
}

void Comparer::compare_tensors() {
  using Places = std::map<std::pair<int, StageId>, const StageTensor*>;
  const auto places_of = [](const CaseRecord& side) {
    Places places;
    for (const StageTensor& tensor : side.tensors)
      places[{tensor.question, tensor.stage}] = &tensor;
    return places;
  };
  const Places theirs = places_of(reference_);
  const Places ours = places_of(observed_);
  add_unknown_tensors(reference_);
  if (!theirs.empty()) add_unknown_tensors(observed_);
  for (const auto& [question, stage] : reference_.lost_tensors) {
    if (!asked(stage.kind)) continue;
    add(question, stage, FindingKind::kMissing,
        "the golden has this stage of other questions, not of this one");
  }
  for (const auto& [place, tensor] : theirs) {
    const auto& [question, stage] = place;
    if (!asked(stage.kind)) continue;
    const auto mine = ours.find(place);
    if (mine == ours.end()) {
      add(question, stage, FindingKind::kMissing, "the stage is not there");
    } else {
      compare_values(question, stage, mine->second->values, tensor->values);
    }
  }
  for (const auto& [place, tensor] : ours) {
    if (theirs.empty() || theirs.contains(place) || !asked(place.second.kind)) continue;
    add(place.first, place.second, FindingKind::kExtra, "the reference has no such stage");
  }
}

void Comparer::add_unknown_tensors(const CaseRecord& side) {
  for (const std::string& name : side.unknown_tensors) {
    add(-1, {StageKind::kFinalNorm}, FindingKind::kExtra,
        fmt::format("a tensor of no known stage: {}", name), "a tensor of no known stage");
  }
}

void Comparer::compare_response() {
  if (!reference_.response) return;
  compare_answers(reference_, observed_, stages_, result_);
}

}  // namespace

CaseComparison compare_cases(const CaseRecord& reference, const CaseRecord& observed,
                             const StageSet& stages) {
  return Comparer(reference, observed, stages).run();
}

}  // namespace jemm

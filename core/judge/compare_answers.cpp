// Probabilities by candidate, the winner and the fields that follow from it, the usage.
#include "judge/compare_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "judge/distance.h"

namespace jemm {
namespace {

constexpr StageId kProbabilities{StageKind::kProbabilities};
constexpr StageId kDecision{StageKind::kDecision};
constexpr StageId kUsage{StageKind::kUsage};

std::optional<double> number_of(const AnswerRecord& answer, std::string_view name) {
  for (const auto& [field, value] : answer.numbers) {
    if (field == name) return value;
  }
  return std::nullopt;
}

std::vector<std::string> candidates_of(const AnswerRecord& answer) {
  std::vector<std::string> ids;
  for (const auto& [id, p] : answer.probabilities) ids.push_back(id);
  return ids;
}

const std::string* text_of(const AnswerRecord& answer, std::string_view name) {
  for (const auto& [field, text] : answer.texts) {
    if (field == name) return &text;
  }
  return nullptr;
}

class AnswerComparer {
 public:
  AnswerComparer(const CaseRecord& reference, const CaseRecord& observed, const StageSet& stages,
                 CaseComparison& result)
      : reference_(reference),
        observed_(observed),
        stages_(stages),
        result_(result),
        blamed_(stages.has(StageKind::kProbabilities) ? kProbabilities : kDecision) {}

  void run();

 private:
  void compare_all(const ResponseRecord& ours, const ResponseRecord& theirs);
  int index_of(const AnswerRecord& answer) const;
  void compare_answer(const AnswerRecord& ours, const AnswerRecord& theirs);
  bool compare_probabilities(const AnswerRecord& ours, const AnswerRecord& theirs);
  void compare_fields(const AnswerRecord& ours, const AnswerRecord& theirs,
                      const AnswerPoint& point);
  void compare_usage(const ResponseRecord& ours, const ResponseRecord& theirs);
  AnswerPoint make_point(const AnswerRecord& ours, const AnswerRecord& theirs) const;
  void add(StageId stage, FindingKind kind, const std::string& what,
           const std::string& redacted = "");

  const CaseRecord& reference_;
  const CaseRecord& observed_;
  const StageSet& stages_;
  CaseComparison& result_;
  StageId blamed_;  ///< for answers of which nothing can be compared
  int question_ = -1;
  std::string question_id_;
};

void AnswerComparer::add(StageId stage, FindingKind kind, const std::string& what,
                         const std::string& redacted) {
  result_.findings.push_back({.case_id = reference_.id,
                              .question = question_,
                              .question_id = question_id_,
                              .stage = stage,
                              .kind = kind,
                              .what = what,
                              .what_redacted = redacted.empty() ? what : redacted});
}

void AnswerComparer::run() {
  const bool answers_asked =
      stages_.has(StageKind::kProbabilities) || stages_.has(StageKind::kDecision);
  const ResponseRecord& theirs = *reference_.response;
  if (!observed_.response) {
    if (answers_asked) add(blamed_, FindingKind::kMissing, "no response");
    if (stages_.has(StageKind::kUsage)) add(kUsage, FindingKind::kMissing, "no response");
    return;
  }
  if (answers_asked) compare_all(*observed_.response, theirs);
  compare_usage(*observed_.response, theirs);
}

/// Pairs answers by the question's id.
void AnswerComparer::compare_all(const ResponseRecord& ours, const ResponseRecord& theirs) {
  const auto find = [](const ResponseRecord& response, const std::string& id) {
    return std::find_if(response.answers.begin(), response.answers.end(),
                        [&](const AnswerRecord& answer) { return answer.question_id == id; });
  };
  for (const AnswerRecord& answer : theirs.answers) {
    question_ = index_of(answer);
    question_id_ = answer.question_id;
    if (!reference_.has_questions) result_.questions.push_back({question_id_, question_});
    const auto mine = find(ours, answer.question_id);
    if (mine == ours.answers.end()) {
      add(blamed_, FindingKind::kMissing, "the answer is not there");
    } else {
      compare_answer(*mine, answer);
    }
  }
  question_ = -1;
  question_id_.clear();
  for (const AnswerRecord& answer : ours.answers) {
    if (find(theirs, answer.question_id) != theirs.answers.end()) continue;
    add(blamed_, FindingKind::kExtra, fmt::format("a further answer: \"{}\"", answer.question_id),
        "a further answer");
  }
}

/// The question of that id, whatever the order of the answers.
int AnswerComparer::index_of(const AnswerRecord& answer) const {
  const auto& questions = reference_.questions;
  const auto found = std::find_if(
      questions.begin(), questions.end(),
      [&](const QuestionRecord& question) { return question.id == answer.question_id; });
  if (found != questions.end()) return static_cast<int>(found - questions.begin());
  return static_cast<int>(&answer - reference_.response->answers.data());
}

void AnswerComparer::compare_answer(const AnswerRecord& ours, const AnswerRecord& theirs) {
  if (!compare_probabilities(ours, theirs)) return;
  AnswerComparison comparison;
  comparison.point = make_point(ours, theirs);
  const auto confidence = [](const std::vector<double>& p) {
    return *std::max_element(p.begin(), p.end());
  };
  comparison.confidence = confidence(comparison.point.observed);
  comparison.reference_confidence = confidence(comparison.point.reference);
  const std::optional<double> mine = number_of(ours, "expected_value");
  const std::optional<double> yours = number_of(theirs, "expected_value");
  if (mine && yours) comparison.expected_value_difference = std::abs(*mine - *yours);
  if (stages_.has(StageKind::kDecision)) compare_fields(ours, theirs, comparison.point);
  if (stages_.has(StageKind::kProbabilities)) {
    result_.values.push_back({.question = question_,
                              .stage = kProbabilities,
                              .rms_ratio = 0,
                              .max_abs = comparison.point.drift});
  }
  result_.answers.push_back(std::move(comparison));
}

/// False when there is no telling how far the probabilities are apart.
bool AnswerComparer::compare_probabilities(const AnswerRecord& ours, const AnswerRecord& theirs) {
  if (stages_.has(StageKind::kProbabilities)) result_.compared.push_back(kProbabilities);
  if (candidates_of(ours) != candidates_of(theirs)) {
    add(blamed_, FindingKind::kDiffers,
        fmt::format("probabilities of {} candidates that are not the {} of the reference, or in "
                    "another order",
                    ours.probabilities.size(), theirs.probabilities.size()));
    return false;
  }
  if (theirs.probabilities.empty()) {
    add(blamed_, FindingKind::kMissing, "the reference's answer has no probabilities");
    return false;
  }
  for (const AnswerRecord* side : {&ours, &theirs}) {
    for (const double p : probabilities_of(*side)) {
      if (p >= 0 && p <= 1) continue;
      add(blamed_, std::isfinite(p) ? FindingKind::kDiffers : FindingKind::kNotFinite,
          fmt::format("a probability is {}{}", p, side == &theirs ? " in the reference" : ""));
      return false;
    }
  }
  return true;
}

AnswerPoint AnswerComparer::make_point(const AnswerRecord& ours, const AnswerRecord& theirs) const {
  AnswerPoint point;
  point.case_id = reference_.id;
  point.question = question_;
  point.question_id = question_id_;
  for (const auto& [name, text] : theirs.texts) {
    if (name == "type") point.type = text;
  }
  for (const QuestionRecord& question : reference_.questions) {
    if (question.id != question_id_) continue;
    if (question.token_ids) point.n_tokens = static_cast<std::int64_t>(question.token_ids->size());
  }
  point.n_images = static_cast<std::int64_t>(reference_.images.size());
  point.candidates = candidates_of(theirs);
  point.reference = probabilities_of(theirs);
  point.observed = probabilities_of(ours);
  const DistributionDistance distance = distribution_distance(point.observed, point.reference);
  point.drift = distance.drift;
  point.kl = distance.kl;
  point.total_variation = distance.total_variation;
  const Winner winner = winner_of(point.reference);
  point.margin = winner.margin;
  point.flipped = winner_of(point.observed).index != winner.index;
  return point;
}

/// The fields beside the probabilities: the same ones, texts equal but for the choice of a winner
/// that flipped, and numbers as near as the probabilities are.
void AnswerComparer::compare_fields(const AnswerRecord& ours, const AnswerRecord& theirs,
                                    const AnswerPoint& point) {
  result_.compared.push_back(kDecision);
  if (ours.fields != theirs.fields) {
    return add(kDecision, FindingKind::kDiffers,
               "the answer has other fields, or in another order");
  }
  for (const auto& [name, text] : theirs.texts) {
    const std::string* mine = text_of(ours, name);
    const std::string& wanted = name == "choice" && point.flipped
                                    ? point.candidates[winner_of(point.observed).index]
                                    : text;
    if (mine != nullptr && *mine == wanted) continue;
    add(kDecision, FindingKind::kDiffers,
        fmt::format("{} is {}, not \"{}\"", name,
                    mine == nullptr ? "no text" : fmt::format("\"{}\"", *mine), wanted),
        "a text of the answer differs");
  }
  // The expected value, a sum of i * p_i over n candidates, moves by at most n^2 / 2 of the drift.
  const auto n = static_cast<double>(point.candidates.size());
  for (const auto& [name, value] : theirs.numbers) {
    const double reach = point.drift * (name == "expected_value" ? n * n / 2 : 1) + 1e-9;
    const std::optional<double> mine = number_of(ours, name);
    if (mine && std::abs(*mine - value) <= reach) continue;
    add(kDecision, FindingKind::kDiffers,
        fmt::format("{} is {}, not {}: more than the probabilities explain", name,
                    mine.value_or(NAN), value),
        "a number of the answer differs by more than the probabilities explain");
  }
}

void AnswerComparer::compare_usage(const ResponseRecord& ours, const ResponseRecord& theirs) {
  if (!stages_.has(StageKind::kUsage)) return;
  const auto compare = [&](std::string_view name, const auto& mine, const auto& yours) {
    if (!yours) return;
    result_.compared.push_back(kUsage);
    if (!mine) return add(kUsage, FindingKind::kMissing, fmt::format("no {}", name));
    if (*mine == *yours) return;
    add(kUsage, FindingKind::kDiffers, fmt::format("{} is {}, not {}", name, *mine, *yours));
  };
  if (!theirs.model.empty() && ours.model != theirs.model) {
    add(kUsage, FindingKind::kDiffers,
        fmt::format("model is \"{}\", not \"{}\"", ours.model, theirs.model), "model differs");
  }
  compare("input_tokens", ours.input_tokens, theirs.input_tokens);
  compare("output_tokens", ours.output_tokens, theirs.output_tokens);
}

}  // namespace

void compare_answers(const CaseRecord& reference, const CaseRecord& observed,
                     const StageSet& stages, CaseComparison& result) {
  AnswerComparer(reference, observed, stages, result).run();
}

}  // namespace jemm

// A request through encoder and engine, recorded as a golden records it.
#include "observer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "contract/answer.h"
#include "evaluate/evaluator.h"
#include "image/patches.h"
#include "image/positions.h"
#include "judge/case_reader.h"
#include "plan/forest.h"
#include "render.h"

namespace jemm::cli {
namespace {

constexpr std::int64_t kMaxPassRows = 4096;

/// Collects tensors of the stages wanted, question by question.
class RecordingTap : public Tap {
 public:
  /// `wanted`: per question of the request; null takes everything.
  explicit RecordingTap(const std::set<std::pair<int, StageId>>* wanted) : wanted_(wanted) {}

  /// Packed rows are counted anew in every pass.
  void begin_pass() { questions_.clear(); }
  /// Rows from `row_begin` on belong to `question`, until the next call.
  void add_rows(std::int64_t row_begin, int question) { questions_[row_begin] = question; }

  void observe(std::string_view name, std::int64_t row, std::span<const float> values) override {
    const std::optional<StageId> stage = parse_stage(name);
    const int question = std::prev(questions_.upper_bound(row))->second;
    if (!stage) {
      unknown_.emplace_back(name);
    } else if (wanted_ == nullptr || wanted_->contains({question, *stage})) {
      std::vector<float>& tensor = tensors_[{question, *stage}];
      tensor.insert(tensor.end(), values.begin(), values.end());
    }
  }

  void move_into(CaseRecord& record) {
    for (auto& [place, values] : tensors_) {
      record.tensors.push_back({place.first, place.second, std::move(values)});
    }
    record.unknown_tensors = std::move(unknown_);
  }

 private:
  const std::set<std::pair<int, StageId>>* wanted_;
  std::map<std::int64_t, int> questions_;
  std::map<std::pair<int, StageId>, std::vector<float>> tensors_;
  std::vector<std::string> unknown_;
};

/// One request on its way through encoder and engine.
class Observation {
 public:
  Observation(const Observer::Model& model, const CaseRecord& reference, const StageSet& stages,
              const RunVariation& variation)
      : model_(model), reference_(reference), stages_(stages), variation_(variation) {
    for (const StageTensor& tensor : reference.tensors) {
      if (stages.has(tensor.stage.kind)) wanted_.insert({tensor.question, tensor.stage});
    }
  }

  CaseRecord run() {
    record_.id = reference_.id;
    try {
      encode();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kRequest) throw;
      CaseRecord refused;
      refused.id = reference_.id;
      refused.error = ErrorRecord{kRefusedHttp, error.type(), error.what()};
      return refused;
    }
    if (model_.engine != nullptr && stages_.needs_engine()) answer();
    return std::move(record_);
  }

 private:
  void encode();
  void answer();
  std::vector<LabelLogits> forward(std::size_t first, std::size_t last, RecordingTap* tap);
  void add_segments(Forest& forest, const EncodedQuestion& encoded) const;
  void add_response(const std::vector<LabelLogits>& logits);

  const Observer::Model& model_;
  const CaseRecord& reference_;
  const StageSet& stages_;
  const RunVariation& variation_;
  std::set<std::pair<int, StageId>> wanted_;
  CaseRecord record_;
  std::vector<EncodedImagePtr> images_;
  std::vector<EncodedQuestion> questions_;
  std::vector<VisionRowsPtr> vision_;
  StageTimes times_;  // not shown
};

void Observation::encode() {
  ImageCache no_cache(0);
  const ImageHashes hashes =
      stages_.has(StageKind::kImageRgb) ? ImageHashes::kCompute : ImageHashes::kSkip;
  EncodedRequest request = model_.encoder.open(reference_.body, {}, hashes, no_cache, times_);
  record_.has_questions = true;
  for (std::size_t i = 0; i < request.request.question_count(); ++i) {
    questions_.push_back(model_.encoder.encode(request, i, times_));
    record_.questions.push_back(question_record(questions_.back()));
    questions_.back().text.clear();
  }
  images_ = request.images;
  const ImageHashes pixels =
      stages_.has(StageKind::kImagePixels) ? ImageHashes::kCompute : ImageHashes::kSkip;
  for (const EncodedImagePtr& image : images_) {
    record_.images.push_back(image_record(*image, pixels));
  }
}

/// Runs the questions in passes of a bounded number of rows.
void Observation::answer() {
  std::vector<ImagePatches> patches;
  for (const EncodedImagePtr& image : images_) {
    patches.push_back({image->patches.grid_thw, image->patches.values});
  }
  if (!patches.empty()) vision_ = model_.engine->vision(patches, times_);
  RecordingTap tap(variation_.every_stage ? nullptr : &wanted_);
  const bool watch = variation_.every_stage || !wanted_.empty();
  std::vector<LabelLogits> logits;
  for (std::size_t first = 0; first < questions_.size();) {
    std::int64_t n_rows = 0;
    std::size_t last = first;
    for (; last < questions_.size(); ++last) {
      n_rows += static_cast<std::int64_t>(questions_[last].token_ids.size());
      if (n_rows > kMaxPassRows && last > first) break;
    }
    const std::vector<LabelLogits> some = forward(first, last, watch ? &tap : nullptr);
    logits.insert(logits.end(), some.begin(), some.end());
    first = last;
  }
  tap.move_into(record_);
  add_response(logits);
}

std::vector<LabelLogits> Observation::forward(std::size_t first, std::size_t last,
                                              RecordingTap* tap) {
  Forest forest;
  if (tap != nullptr) tap->begin_pass();
  for (std::size_t i = first; i < last; ++i) {
    const std::int64_t begin = forest.n_rows();
    if (tap != nullptr) tap->add_rows(begin, static_cast<int>(i));
    for (std::size_t k = 0; k < images_.size(); ++k) {
      forest.image_rows.push_back(
          {.image = static_cast<std::int32_t>(k),
           .image_row = 0,
           .row_begin = begin + static_cast<std::int64_t>(questions_[i].image_begins[k]),
           .n_rows = static_cast<std::int64_t>(images_[k]->n_tokens())});
    }
    add_segments(forest, questions_[i]);
  }
  return model_.engine->forward(forest, vision_, times_, tap);
}

void Observation::add_segments(Forest& forest, const EncodedQuestion& encoded) const {
  const std::span<const std::int32_t> tokens(encoded.token_ids);
  const auto split = static_cast<std::size_t>(variation_.split_rows);
  if (split == 0 || !images_.empty() || tokens.size() <= split) {
    forest.read_last_row(forest.add(-1, tokens, encoded.positions));
    return;
  }
  const std::int32_t root = forest.add(-1, tokens.first(split));
  std::vector<Position> positions;
  for (std::size_t i = split; i < tokens.size(); ++i) {
    const std::int32_t place = static_cast<std::int32_t>(i) + variation_.position_shift;
    positions.push_back({place, place, place});
  }
  forest.read_last_row(forest.add(root, tokens.subspan(split), positions));
}

/// The response that decide would print, read back from its line. Without one when a logit is not
/// finite: the logits show it.
void Observation::add_response(const std::vector<LabelLogits>& logits) {
  RequestResult result;
  const double temperature =
      (images_.empty() ? model_.decision.temperature : model_.decision.mm_temperature) *
      variation_.temperature_factor;
  bool complete = true;
  for (std::size_t i = 0; i < questions_.size(); ++i) {
    const Question& question = questions_[i].question;
    const std::span<const float> used(logits[i].data(), question.candidates.size());
    record_.questions[i].logits.emplace(used.begin(), used.end());
    result.input_tokens += questions_[i].token_ids.size();
    try {
      result.questions.push_back(
          {question.id, make_answer(question, calibrate(used, temperature))});
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kDevice) throw;
      complete = false;
    }
  }
  if (!complete) return;
  ResultContext context;
  context.id = "\"\"";
  record_.response = read_response(result_line(result, context), "the answer");
}

}  // namespace

ImageRecord image_record(const EncodedImage& image, ImageHashes pixels) {
  return {
      .width = image.width,
      .height = image.height,
      .rgb_sha256 = image.rgb_sha256,
      .grid_thw = image.patches.grid_thw,
      .pixel_values_sha256 = pixels == ImageHashes::kCompute ? values_sha256(image.patches) : ""};
}

QuestionRecord question_record(const EncodedQuestion& encoded) {
  QuestionRecord question;
  question.id = encoded.question.id;
  question.type = question_type_name(encoded.question.type);
  question.candidates = encoded.question.candidates;
  question.prompt = encoded.text;
  question.token_ids = encoded.token_ids;
  if (!encoded.positions.empty()) {
    question.position_ids_sha256 = positions_sha256(encoded.positions);
  }
  return question;
}

CaseRecord Observer::observe(const CaseRecord& reference, const StageSet& stages,
                             const RunVariation& variation) const {
  return Observation(model_, reference, stages, variation).run();
}

}  // namespace jemm::cli

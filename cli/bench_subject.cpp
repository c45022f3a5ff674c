#include "bench_subject.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "render.h"

namespace jemm::cli {
namespace {

/// Passes calls on, and notes their time and what they computed: nothing where memory ran out, as
/// the evaluator asks again in smaller passes.
class WatchedEngine : public Engine {
 public:
  WatchedEngine(Engine& engine, RunSample& sample) : engine_(engine), sample_(sample) {}

  std::vector<VisionRowsPtr> vision(std::span<const ImagePatches> images,
                                    StageTimes& times) override {
    auto rows = timed([&] { return engine_.vision(images, times); });
    sample_.work.add(images);
    return rows;
  }

  std::vector<LabelLogits> forward(const Forest& forest, std::span<const VisionRowsPtr> images,
                                   StageTimes& times, Tap* tap) override {
    auto logits = timed([&] { return engine_.forward(forest, images, times, tap); });
    sample_.work.add(forest);
    return logits;
  }

  const std::string& fingerprint() const override { return engine_.fingerprint(); }

 private:
  template <typename Call>
  std::invoke_result_t<Call> timed(const Call& call) {
    const StageTimer timer(sample_.engine_ms);
    return call();
  }

  Engine& engine_;
  RunSample& sample_;
};

}  // namespace

RunSample RequestSubject::run(Outputs& outputs) {
  RunSample sample;
  WatchedEngine engine(engine_, sample);
  std::vector<RequestResult> results;
  results.reserve(requests_.size());
  Evaluator evaluator(encoder_, engine, decision_, options_, [&](RequestResult&& result) {
    result_line(result, {.id = "\"\"",
                         .line = results.size() + 1,
                         .request_sha256 = {},
                         .engine = engine_.fingerprint(),
                         .reuse = options_.reuse,
                         .threshold = decision_.threshold});
    results.push_back(std::move(result));
  });
  // submit keeps the images' bytes: copies of them are made before the clock starts.
  std::vector<std::vector<std::string>> image_files;
  for (const BenchRequest& request : requests_) image_files.push_back(request.image_files);
  {
    const StageTimer timer(sample.total_ms);
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (requests_[i].error) {
        evaluator.refuse(*requests_[i].error);
      } else {
        evaluator.submit(requests_[i].body, std::move(image_files[i]));
      }
    }
    evaluator.flush();
  }
  const double elsewhere_ms = sample.engine_ms + evaluator.images_ms();
  sample.overlap_ms = std::max(0.0, elsewhere_ms - evaluator.waited_ms());
  n_tokens_ = n_questions_ = n_refused_ = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    take(results[i], requests_[i].id, sample, outputs);
  }
  return sample;
}

void RequestSubject::take(const RequestResult& result, const std::string& id, RunSample& sample,
                          Outputs& outputs) {
  for (std::size_t i = 0; i < kStages; ++i) {
    sample.stages.stage_ms[i] += result.times.stage_ms[i];
  }
  n_tokens_ += result.input_tokens;
  n_questions_ += result.questions.size();
  if (result.error) {
    const std::string refusal = fmt::format("{}: {}", result.error->type(), result.error->what());
    const std::string name = fmt::format("request {}", id);
    if (n_refused_++ == 0) first_refusal_ = fmt::format("{}: {}", name, refusal);
    outputs.push_back({name, refusal, {}});
  }
  for (const QuestionResult& question : result.questions) {
    outputs.push_back({fmt::format("request {}, question {}", id, question.id), "",
                       question.answer.probabilities});
  }
}

}  // namespace jemm::cli

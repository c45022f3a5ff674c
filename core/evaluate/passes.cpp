// The evaluator's passes: planning what waits, running it, checking what reuse has done.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "evaluate/evaluator.h"

namespace jemm {

std::size_t Evaluator::Pending::n_image_rows() const {
  std::size_t n = 0;
  for (const EncodedImagePtr& image : images) n += image->n_tokens();
  return n;
}

Evaluator::Window Evaluator::plan_window(Extent extent) {
  StageTimes times;
  Window window;
  {
    const StageTimer total(times.total_ms);
    const StageTimer timer(times[Stage::kPlan]);
    std::vector<PromptRows> prompts;
    for (const Pending& pending : pending_) prompts.push_back(pending.rows());
    const OrderedPrompts ordered = order_prompts(prompts, options_.reuse);
    for (const std::size_t i : ordered.prompts) {
      window.questions.push_back(&pending_[i]);
      window.prompts.push_back(prompts[i]);
    }
    window.plan = plan_reuse(ordered.order, options_.profile,
                             {.max_rows = static_cast<std::int64_t>(options_.batch_tokens),
                              .max_segments = options_.max_segments,
                              .more_to_come = extent == Extent::kAllButLastPass});
  }
  Shares shares;
  for (const Pending& pending : pending_) shares.emplace_back(pending.request, pending.n_rows());
  share_time(times, shares);
  return window;
}

/// Runs what waits, or all but the last pass of it, which more questions may still fill.
void Evaluator::run_window(Extent extent) {
  if (pending_.empty() || is_stopped_) return;
  const Window window = plan_window(extent);
  const std::vector<PlannedPass>& passes = window.plan.passes;
  const std::size_t n_passes = passes.size() - (extent == Extent::kAll ? 0 : 1);
  std::vector<std::int64_t> n_rows;
  std::vector<std::uint64_t> requests;
  for (const Pending* pending : window.questions) {
    n_rows.push_back(static_cast<std::int64_t>(pending->n_rows()));
    requests.push_back(pending->request->number);
  }
  for (std::size_t i = 0; i < n_passes; ++i) {
    if (i > 0 && options_.stop && options_.stop()) {
      is_stopped_ = true;
      return;
    }
    run_pass(window, passes[i]);
    deliver();
  }
  summary_.add(window.plan, n_passes, n_rows, requests);
  if (n_passes < passes.size()) {
    for (const PlannedRead& read : passes.back().reads) window[read].n_new_rows = read.n_computed;
  }
  release_done();
  plan_again_at_ = n_passes == 0 ? 2 * pending_.size() : 0;
}

/// Forgets the questions that are done.
void Evaluator::release_done() {
  std::erase_if(pending_, [](const Pending& pending) { return pending.is_done; });
  pending_rows_ = 0;
  pending_memory_ = {};
  for (const Pending& pending : pending_) {
    pending_rows_ += pending.n_new_rows;
    pending_memory_.add(pending.n_bytes(), pending.images);
  }
}

void Evaluator::run_pass(const Window& window, const PlannedPass& pass) {
  try {
    answer_pass(window, pass);
  } catch (const OutOfMemory& error) {
    run_apart(window, pass, error);
  }
}

/// A pass was too large for the engine: its questions are tried one by one, and a request whose
/// question is too large alone fails alone.
void Evaluator::run_apart(const Window& window, const PlannedPass& pass, const OutOfMemory& error) {
  if (pass.reads.size() == 1) {
    Pending& question = window[pass.reads.front()];
    question.is_done = true;
    --question.request->n_pending;
    question.request->result.error = Error::request("OutOfMemoryError", error.what());
    return;
  }
  for (const PlannedRead& read : pass.reads) {
    run_pass(window, whole_pass(read.sequence, static_cast<std::int64_t>(window[read].n_rows())));
  }
}

void Evaluator::answer_pass(const Window& window, const PlannedPass& pass) {
  run_vision(window, pass);
  StageTimes times;
  const std::vector<LabelLogits> logits = run_text(window, pass, times);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const PlannedRead& read = pass.reads[i];
    if (window[read].request->audit == Audit::kYes) audit(window, read, logits[i]);
  }
  Shares shares;
  for (const PlannedRead& read : pass.reads) {
    InFlight* request = window[read].request;
    const auto n_computed = static_cast<std::size_t>(read.n_computed);
    request->result.rows_computed += n_computed;
    shares.emplace_back(request, n_computed);
  }
  share_time(times, shares);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    finish_question(window[pass.reads[i]], logits[i]);
  }
}

/// Has the engine make rows of the images that have none; their patches are then let go.
void Evaluator::run_vision(const Window& window, const PlannedPass& pass) {
  std::vector<EncodedImagePtr> images;
  Shares shares;
  for (const PlannedRead& read : pass.reads) {
    const Pending& question = window[read];
    shares.emplace_back(question.request, question.n_image_rows());
    for (const EncodedImagePtr& image : question.images) {
      if (image->rows == nullptr) images.push_back(image);
    }
  }
  if (images.empty()) return;
  std::sort(images.begin(), images.end());
  images.erase(std::unique(images.begin(), images.end()), images.end());
  StageTimes times;
  {
    const StageTimer total(times.total_ms);
    std::vector<ImagePatches> patches;
    for (const EncodedImagePtr& image : images) {
      patches.push_back({image->patches.grid_thw, image->patches.values});
    }
    const std::vector<VisionRowsPtr> rows = engine_.vision(patches, times);
    for (std::size_t i = 0; i < images.size(); ++i) {
      images[i]->rows = rows[i];
      std::exchange(images[i]->patches.values, {});
      images_.keep(images[i]);
    }
  }
  share_time(times, shares);
}

std::vector<LabelLogits> Evaluator::run_text(const Window& window, const PlannedPass& pass,
                                             StageTimes& times) {
  const StageTimer total(times.total_ms);
  PackedPass packed;
  {
    const StageTimer timer(times[Stage::kPlan]);
    packed = pack_pass(pass, window.prompts);
  }
  return engine_.forward(packed.forest, packed.images, times);
}

/// Every request gets its share of the time.
void Evaluator::share_time(const StageTimes& times, const Shares& shares) {
  std::size_t n_all = 0;
  for (const auto& [request, n] : shares) n_all += n;
  for (const auto& [request, n] : shares) {
    const double share = static_cast<double>(n) / static_cast<double>(n_all);
    StageTimes& own = request->result.times;
    for (std::size_t i = 0; i < kStages; ++i) own.stage_ms[i] += share * times.stage_ms[i];
    own.total_ms += share * times.total_ms;
  }
}

double Evaluator::temperature(const Pending& pending) const {
  return pending.images.empty() ? decision_.temperature : decision_.mm_temperature;
}

/// Computes the question alone and whole; the time is nobody's.
void Evaluator::audit(const Window& window, const PlannedRead& read, const LabelLogits& logits) {
  const Pending& question = window[read];
  StageTimes times;
  const LabelLogits whole =
      run_text(window, whole_pass(read.sequence, static_cast<std::int64_t>(question.n_rows())),
               times)
          .front();
  std::optional<ReuseAudit>& audit = question.request->result.audit;
  if (!audit) audit.emplace();
  if (std::memcmp(whole.data(), logits.data(), sizeof whole) == 0) return;
  audit->equal_bits = false;
  const std::size_t n = question.encoded.question.candidates.size();
  try {
    const auto a = calibrate({logits.data(), n}, temperature(question));
    const auto b = calibrate({whole.data(), n}, temperature(question));
    for (std::size_t i = 0; i < n; ++i) {
      audit->difference = std::max(audit->difference, std::abs(a[i] - b[i]));
    }
  } catch (const Error&) {
    audit->difference = 1;  // one of them is no probability
  }
}

void Evaluator::finish_question(Pending& pending, const LabelLogits& logits) {
  RequestResult& result = pending.request->result;
  const StageTimer total(result.times.total_ms);
  const StageTimer timer(result.times[Stage::kCalibrate]);
  pending.is_done = true;
  --pending.request->n_pending;
  const Question& question = pending.encoded.question;
  const std::span<const float> used(logits.data(), question.candidates.size());
  try {
    Answer answer = make_answer(question, calibrate(used, temperature(pending)));
    if (result.questions.size() <= pending.index) result.questions.resize(pending.index + 1);
    result.questions[pending.index] = {question.id, std::move(answer)};
  } catch (const Error& error) {
    if (!result.error) result.error = error;
  }
}

}  // namespace jemm

// The evaluator's passes: planning what waits, handing it to the engine, taking it back.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "evaluate/evaluator.h"

namespace jemm {

Evaluator::Window Evaluator::plan_window(Extent extent) {
  StageTimes times;
  Window window;
  {
    const StageTimer total(times.total_ms);
    const StageTimer timer(times[Stage::kPlan]);
    std::vector<PromptRows> prompts;
    for (const PendingPtr& pending : pending_) prompts.push_back(pending->rows());
    const OrderedPrompts ordered = order_prompts(prompts, options_.reuse);
    for (const std::size_t i : ordered.prompts) {
      window.questions.push_back(pending_[i]);
      window.prompts.push_back(prompts[i]);
    }
    window.plan = plan_reuse(ordered.order, options_.profile,
                             {.max_rows = static_cast<std::int64_t>(options_.batch_tokens),
                              .max_segments = options_.max_segments,
                              .more_to_come = extent == Extent::kAllButLastPass});
  }
  TimeShares shares;
  for (const PendingPtr& pending : pending_) {
    shares.emplace_back(&pending->request->result.times, pending->n_rows());
  }
  share_time(times, shares);
  return window;
}

/// Has the engine compute what waits, or all but the last pass of it, which more questions may
/// still fill.
void Evaluator::run_window(Extent extent) {
  if (pending_.empty() || is_stopped_) return;
  const Window window = plan_window(extent);
  const std::vector<PlannedPass>& passes = window.plan.passes;
  const std::size_t n_passes = passes.size() - (extent == Extent::kAllButLastPass ? 1 : 0);
  std::vector<std::int64_t> n_rows;
  std::vector<std::uint64_t> requests;
  for (const PendingPtr& pending : window.questions) {
    n_rows.push_back(static_cast<std::int64_t>(pending->n_rows()));
    requests.push_back(pending->request->number);
  }
  try {
    for (std::size_t i = 0; i < n_passes; ++i) {
      if (i > 0 && options_.stop && options_.stop()) {
        is_stopped_ = true;
        break;
      }
      launch(window, passes[i], extent);
    }
  } catch (...) {  // what has been launched must not be launched again
    is_stopped_ = true;
    release_launched();
    throw;
  }
  if (!is_stopped_) summary_.add(window.plan, n_passes, n_rows, requests);
  if (n_passes < passes.size()) {
    for (const PlannedRead& read : passes.back().reads) window[read]->n_new_rows = read.n_computed;
  }
  release_launched();
  plan_again_at_ = n_passes == 0 ? 2 * pending_.size() : 0;
}

void Evaluator::release_launched() {
  std::erase_if(pending_, [](const PendingPtr& pending) { return pending->is_launched; });
  pending_rows_ = 0;
  for (const PendingPtr& pending : pending_) pending_rows_ += pending->n_new_rows;
}

/// Hands a pass to the engine. While it is computed and the next one is prepared, the one before
/// the last is answered.
void Evaluator::launch(const Window& window, const PlannedPass& pass, Extent extent) {
  constexpr std::size_t kMostLaunched = 2;  // one runs, one waits
  Launched& launched = launched_.emplace_back();
  PassJob& job = launched.job;
  for (const PlannedRead& read : pass.reads) {
    const PendingPtr& pending = window[read];
    pending->is_launched = true;
    launched.questions.push_back(pending);
    job.questions.push_back({.rows = pending->rows(),
                             .n_computed = read.n_computed,
                             .is_audited = pending->request->audit == Audit::kYes});
  }
  StageTimes times;
  {
    const StageTimer total(times.total_ms);
    const StageTimer timer(times[Stage::kPlan]);
    job.packed = pack_pass(pass, window.prompts);
  }
  TimeShares shares;
  for (PassQuestion& question : job.questions) {
    shares.emplace_back(&question.times, static_cast<std::size_t>(question.n_computed));
  }
  share_time(times, shares);
  {
    const StageTimer timer(waited_ms_);
    if (extent == Extent::kRest && launched_.size() == 1 && &pass == &window.plan.passes.back()) {
      run_pass(engine_, job);  // here: there is nothing else to do meanwhile
    } else {
      runner_.submit(job);
    }
  }
  if (launched_.size() > kMostLaunched) collect();
}

/// Answers the questions of the oldest pass that the engine was given, and hands over the requests
/// that are done.
void Evaluator::collect() {
  {
    const StageTimer timer(waited_ms_);
    runner_.wait(launched_.front().job);
  }
  const Launched launched = std::move(launched_.front());
  launched_.pop_front();
  const PassJob& job = launched.job;
  if (job.error) {
    is_stopped_ = true;
    std::rethrow_exception(job.error);
  }
  for (const EncodedImagePtr& image : job.looked_at) {
    std::exchange(image->patches.values, {});
    held_.update(*image);
    images_.keep(image);
  }
  for (std::size_t i = 0; i < job.questions.size(); ++i) {
    Pending& pending = *launched.questions[i];
    held_.remove(pending.n_bytes(), pending.images);
    finish_question(pending, job.questions[i]);
  }
  deliver();
}

void Evaluator::finish_question(Pending& pending, const PassQuestion& computed) {
  RequestResult& result = pending.request->result;
  --pending.request->n_pending;
  result.times.add(computed.times);
  if (computed.too_large) {
    if (!result.error) result.error = Error::request("OutOfMemoryError", *computed.too_large);
    return;
  }
  result.rows_computed += static_cast<std::size_t>(computed.n_computed);
  if (computed.alone) add_audit(pending, computed);
  add_answer(pending, computed.logits);
}

double Evaluator::temperature(const Pending& pending) const {
  return pending.images.empty() ? decision_.temperature : decision_.mm_temperature;
}

/// Compares what a question got among others with what it got alone and whole.
void Evaluator::add_audit(Pending& pending, const PassQuestion& computed) {
  std::optional<ReuseAudit>& audit = pending.request->result.audit;
  if (!audit) audit.emplace();
  const LabelLogits &logits = computed.logits, &alone = *computed.alone;
  if (std::memcmp(alone.data(), logits.data(), sizeof alone) == 0) return;
  audit->equal_bits = false;
  const std::size_t n = pending.encoded.question.candidates.size();
  try {
    const auto a = calibrate({logits.data(), n}, temperature(pending));
    const auto b = calibrate({alone.data(), n}, temperature(pending));
    for (std::size_t i = 0; i < n; ++i) {
      audit->difference = std::max(audit->difference, std::abs(a[i] - b[i]));
    }
  } catch (const Error&) {
    audit->difference = 1;  // one of them is no probability
  }
}

void Evaluator::add_answer(Pending& pending, const LabelLogits& logits) {
  RequestResult& result = pending.request->result;
  const StageTimer total(result.times.total_ms);
  const StageTimer timer(result.times[Stage::kCalibrate]);
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

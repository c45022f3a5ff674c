#include "evaluate/evaluator.h"

#include <algorithm>
#include <span>
#include <utility>

#include "plan/forest.h"

namespace jemm {

Evaluator::Evaluator(const Encoder& encoder, Engine& engine, const DecisionConfig& decision,
                     const EvaluatorOptions& options, Done done)
    : encoder_(encoder),
      engine_(engine),
      decision_(decision),
      options_(options),
      done_(std::move(done)),
      images_(options.image_cache_bytes) {}

std::size_t Evaluator::Pending::n_image_rows() const {
  std::size_t n = 0;
  for (const EncodedImagePtr& image : images) n += image->n_tokens();
  return n;
}

void Evaluator::submit(std::string_view body, std::vector<std::string> image_files) {
  InFlight& request = requests_.emplace_back();
  request.submitted = Clock::now();
  try {
    queue_questions(request, body, std::move(image_files));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kRequest) throw;
    withdraw(request, error);
  }
  settle(request);
}

void Evaluator::refuse(const Error& error) {
  InFlight& request = requests_.emplace_back();
  request.submitted = Clock::now();
  request.result.error = error;
  settle(request);
}

void Evaluator::settle(InFlight& request) {
  request.complete = true;
  if (requests_.size() >= options_.max_in_flight) run_pass();
  deliver();
}

void Evaluator::flush() {
  run_pass();
  deliver();
}

void Evaluator::queue_questions(InFlight& in_flight, std::string_view body,
                                std::vector<std::string> image_files) {
  RequestResult& result = in_flight.result;
  StageTimes& times = result.times;
  std::optional<EncodedRequest> request;
  {
    const StageTimer total(times.total_ms);
    request = encoder_.open(body, std::move(image_files), ImageHashes::kSkip, images_, times);
    const StageTimer timer(times[Stage::kTokenize]);
    result.special_tokens = encoder_.tokenizer().count_added_tokens(request->request.state());
  }
  const std::size_t n_in_state = result.special_tokens;
  const std::size_t n_questions = request->request.question_count();
  for (std::size_t i = 0; i < n_questions; ++i) {
    Pending pending{&in_flight, {}, request->images};
    {
      const StageTimer total(times.total_ms);
      pending.encoded = encoder_.encode(*request, i, times);
      const StageTimer timer(times[Stage::kTokenize]);
      const std::size_t n_in_prompt =
          encoder_.tokenizer().count_added_tokens(pending.encoded.question.prompt);
      result.special_tokens += n_in_prompt - std::min(n_in_prompt, n_in_state);  // the state's once
    }
    std::exchange(pending.encoded.text, {});  // as long as the prompt, and not needed
    const std::size_t n_rows = pending.n_rows();
    if (pending_rows_ + n_rows > options_.batch_tokens) flush();
    pending_.push_back(std::move(pending));
    pending_rows_ += n_rows;
    ++in_flight.n_pending;
    result.input_tokens += n_rows;
  }
}

/// Turns a request into an error; its questions that still wait are dropped.
void Evaluator::withdraw(InFlight& request, const Error& error) {
  std::erase_if(pending_, [&](const Pending& pending) {
    if (pending.request != &request) return false;
    pending_rows_ -= pending.n_rows();
    return true;
  });
  request.n_pending = 0;
  request.result.error = error;
}

void Evaluator::run_pass() {
  if (pending_.empty()) return;
  try {
    answer_pass();
  } catch (const OutOfMemory& error) {
    run_apart(error);
  }
}

/// A pass was too large for the engine: its questions are tried one by one, and a request whose
/// question is too large alone fails alone.
void Evaluator::run_apart(const OutOfMemory& error) {
  std::vector<Pending> questions = std::exchange(pending_, {});
  pending_rows_ = 0;
  if (questions.size() == 1) {
    InFlight& request = *questions.front().request;
    --request.n_pending;
    request.result.error = Error::request("OutOfMemoryError", error.what());
    return;
  }
  for (Pending& question : questions) {
    pending_rows_ = question.n_rows();
    pending_.push_back(std::move(question));
    run_pass();
  }
}

void Evaluator::answer_pass() {
  run_vision();
  StageTimes times;
  const std::vector<LabelLogits> logits = run_text(times);
  share_time(times, &Pending::n_rows);
  const std::vector<Pending> finished = std::exchange(pending_, {});
  pending_rows_ = 0;
  for (std::size_t i = 0; i < finished.size(); ++i) finish_question(finished[i], logits[i]);
}

/// Has the engine make rows of the images that have none; their patches are then let go.
void Evaluator::run_vision() {
  std::vector<EncodedImagePtr> images;
  for (const Pending& pending : pending_) {
    for (const EncodedImagePtr& image : pending.images) {
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
  share_time(times, &Pending::n_image_rows);
}

std::vector<LabelLogits> Evaluator::run_text(StageTimes& times) {
  const StageTimer total(times.total_ms);
  Forest forest;
  std::vector<VisionRowsPtr> images;
  {
    const StageTimer timer(times[Stage::kPlan]);
    for (const Pending& pending : pending_) {
      const std::int64_t begin = forest.n_rows();
      for (std::size_t i = 0; i < pending.images.size(); ++i) {
        forest.image_rows.push_back(
            {.image = static_cast<std::int32_t>(images.size()),
             .image_row = 0,
             .row_begin = begin + static_cast<std::int64_t>(pending.encoded.image_begins[i]),
             .n_rows = static_cast<std::int64_t>(pending.images[i]->n_tokens())});
        images.push_back(pending.images[i]->rows);
      }
      forest.read_last_row(forest.add(-1, pending.encoded.token_ids, pending.encoded.positions));
    }
  }
  return engine_.forward(forest, images, times);
}

/// Every question of the pass gets its share of the time, by the number of its rows of some kind.
void Evaluator::share_time(const StageTimes& times, std::size_t (Pending::*n_rows)() const) {
  std::size_t n_all = 0;
  for (const Pending& pending : pending_) n_all += (pending.*n_rows)();
  for (const Pending& pending : pending_) {
    const double share = static_cast<double>((pending.*n_rows)()) / static_cast<double>(n_all);
    StageTimes& own = pending.request->result.times;
    for (std::size_t i = 0; i < kStages; ++i) own.stage_ms[i] += share * times.stage_ms[i];
    own.total_ms += share * times.total_ms;
  }
}

void Evaluator::finish_question(const Pending& pending, const LabelLogits& logits) {
  RequestResult& result = pending.request->result;
  const StageTimer total(result.times.total_ms);
  const StageTimer timer(result.times[Stage::kCalibrate]);
  --pending.request->n_pending;
  const Question& question = pending.encoded.question;
  const std::span<const float> used(logits.data(), question.candidates.size());
  try {
    const double temperature =
        pending.images.empty() ? decision_.temperature : decision_.mm_temperature;
    result.questions.push_back({question.id, make_answer(question, calibrate(used, temperature))});
  } catch (const Error& error) {
    if (!result.error) result.error = error;
  }
}

/// Hands over the finished requests at the front.
void Evaluator::deliver() {
  while (!requests_.empty() && requests_.front().complete && requests_.front().n_pending == 0) {
    InFlight& front = requests_.front();
    if (front.result.error) front.result.questions.clear();
    front.result.latency_ms =
        std::chrono::duration<double, std::milli>(Clock::now() - front.submitted).count();
    done_(std::move(front.result));
    requests_.pop_front();
  }
}

}  // namespace jemm

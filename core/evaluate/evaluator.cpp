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
      done_(std::move(done)) {}

void Evaluator::submit(std::string_view body) {
  InFlight& request = requests_.emplace_back();
  request.submitted = Clock::now();
  try {
    queue_questions(request, body);
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

void Evaluator::queue_questions(InFlight& in_flight, std::string_view body) {
  RequestResult& result = in_flight.result;
  StageTimes& times = result.times;
  std::optional<EncodedRequest> request;
  {
    const StageTimer total(times.total_ms);
    const StageTimer timer(times[Stage::kParse]);
    request = encoder_.open(body);
    result.special_tokens = encoder_.tokenizer().count_added_tokens(request->request.state());
  }
  const std::size_t n_in_state = result.special_tokens;
  const std::size_t n_questions = request->request.question_count();
  for (std::size_t i = 0; i < n_questions; ++i) {
    EncodedQuestion encoded;
    {
      const StageTimer total(times.total_ms);
      const StageTimer timer(times[Stage::kTokenize]);
      encoded = encoder_.encode(*request, i);
      const std::size_t n_in_prompt =
          encoder_.tokenizer().count_added_tokens(encoded.question.prompt);
      result.special_tokens += n_in_prompt - std::min(n_in_prompt, n_in_state);  // the state's once
    }
    if (!request->images.empty()) {
      throw Error::request("NotImplementedError", "requests with images are not answered yet");
    }
    const std::size_t n_rows = encoded.token_ids.size();
    if (pending_rows_ + n_rows > options_.batch_tokens) run_pass();
    pending_.push_back({&in_flight, std::move(encoded.question), std::move(encoded.token_ids)});
    pending_rows_ += n_rows;
    ++in_flight.n_pending;
    result.input_tokens += n_rows;
  }
}

/// Turns a request into an error; its questions that still wait are dropped.
void Evaluator::withdraw(InFlight& request, const Error& error) {
  std::erase_if(pending_, [&](const Pending& pending) {
    if (pending.request != &request) return false;
    pending_rows_ -= pending.token_ids.size();
    return true;
  });
  request.n_pending = 0;
  request.result.error = error;
}

void Evaluator::run_pass() {
  if (pending_.empty()) return;
  StageTimes pass;
  std::vector<LabelLogits> logits;
  {
    const StageTimer total(pass.total_ms);
    Forest forest;
    {
      const StageTimer timer(pass[Stage::kPlan]);
      for (const Pending& pending : pending_) {
        forest.read_last_row(forest.add(-1, pending.token_ids));
      }
    }
    logits = engine_.forward(forest, pass);
  }
  share_pass_time(pass);
  const std::vector<Pending> finished = std::exchange(pending_, {});
  pending_rows_ = 0;
  for (std::size_t i = 0; i < finished.size(); ++i) finish_question(finished[i], logits[i]);
}

/// Every question of the pass gets its rows' share of the time.
void Evaluator::share_pass_time(const StageTimes& pass) {
  for (const Pending& pending : pending_) {
    const double share =
        static_cast<double>(pending.token_ids.size()) / static_cast<double>(pending_rows_);
    StageTimes& times = pending.request->result.times;
    for (std::size_t i = 0; i < kStages; ++i) times.stage_ms[i] += share * pass.stage_ms[i];
    times.total_ms += share * pass.total_ms;
  }
}

void Evaluator::finish_question(const Pending& pending, const LabelLogits& logits) {
  RequestResult& result = pending.request->result;
  const StageTimer total(result.times.total_ms);
  const StageTimer timer(result.times[Stage::kCalibrate]);
  --pending.request->n_pending;
  const Question& question = pending.question;
  const std::span<const float> used(logits.data(), question.candidates.size());
  try {
    result.questions.push_back(
        {question.id, make_answer(question, calibrate(used, decision_.temperature))});
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

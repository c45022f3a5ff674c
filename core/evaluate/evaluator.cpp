#include "evaluate/evaluator.h"

#include <algorithm>
#include <utility>

namespace jemm {

Evaluator::Evaluator(const Encoder& encoder, Engine& engine, const DecisionConfig& decision,
                     const EvaluatorOptions& options, Done done)
    : encoder_(encoder),
      engine_(engine),
      decision_(decision),
      options_(options),
      done_(std::move(done)),
      images_(options.image_cache_bytes),
      runner_(engine) {}

std::size_t Evaluator::Pending::n_bytes() const {
  std::size_t n = sizeof(Pending) + encoded.question.id.size() +
                  encoded.token_ids.size() * sizeof(std::int32_t) +
                  encoded.positions.size() * sizeof(Position);
  for (const std::string& candidate : encoded.question.candidates) {
    n += sizeof candidate + candidate.size();
  }
  return n;
}

Evaluator::InFlight& Evaluator::add_request() {
  InFlight& request = requests_.emplace_back();
  request.submitted = Clock::now();
  request.number = ++n_requests_;
  return request;
}

void Evaluator::submit(std::string_view body, std::vector<std::string> image_files, Audit audit) {
  InFlight& request = add_request();
  request.audit = audit;
  InLine next{.request = &request, .n_bytes = body.size()};
  for (const std::string& file : image_files) next.n_bytes += file.size();
  try {
    const StageTimer total(request.result.times.total_ms);
    next.encoded = encoder_.start(body, std::move(image_files), ImageHashes::kSkip, images_,
                                  request.result.times);
    next.n_new_images = next.encoded->opening.n_new();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kRequest) throw;
    next.refused = error;
  }
  line_.push_back(std::move(next));
  while (is_next_due()) take_next();
}

void Evaluator::refuse(const Error& error) {
  line_.push_back({.request = &add_request(), .refused = error});
  while (is_next_due()) take_next();
}

/// Whether the next request in line needs no new image, or must not wait for it any longer.
bool Evaluator::is_next_due() const {
  constexpr std::size_t kMostImages = 8, kMostRequests = 32, kMostBytes = std::size_t{64} << 20;
  std::size_t n_images = 0, n_bytes = 0;
  for (const InLine& next : line_) {
    n_images += next.n_new_images;
    n_bytes += next.n_bytes;
  }
  return !line_.empty() && (line_.front().n_new_images == 0 || n_images > kMostImages ||
                            line_.size() > kMostRequests || n_bytes > kMostBytes);
}

void Evaluator::take_next() {
  InLine next = std::move(line_.front());
  line_.pop_front();
  try {
    if (next.refused) {
      withdraw(*next.request, *next.refused);
    } else {
      queue_questions(*next.request, *next.encoded);
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kRequest) throw;
    withdraw(*next.request, error);
  }
  settle(*next.request);
}

void Evaluator::settle(InFlight& request) {
  request.complete = true;
  if (is_full(&Evaluator::has_too_many_requests)) run_window(Extent::kAll);
  deliver();
}

bool Evaluator::has_too_many_requests() const {
  constexpr std::size_t kRequestBytes = 1024;  // in flight, with short answers
  const std::size_t n_read = requests_.size() - line_.size();
  return options_.reuse == PrefixReuse::kFile
             ? held_.n_bytes() + kRequestBytes * n_read > options_.reuse_memory
             : n_read >= options_.max_in_flight;
}

bool Evaluator::has_too_large_questions() const {
  return options_.reuse != PrefixReuse::kOff && held_.n_bytes() > options_.reuse_memory;
}

/// Answers what has been handed to the engine for as long as there is too much; whether there is
/// when nothing is left there. So passes in flight count, but force no others.
bool Evaluator::is_full(bool (Evaluator::*too_much)() const) {
  while ((this->*too_much)() && !launched_.empty()) collect();
  return (this->*too_much)();
}

void Evaluator::flush() {
  while (!line_.empty() && !is_stopped_) {
    is_stopped_ = options_.stop && options_.stop();
    if (!is_stopped_) take_next();
  }
  run_window(Extent::kRest);
  while (!launched_.empty()) collect();
  deliver();
}

void Evaluator::queue_questions(InFlight& in_flight, EncodedRequest& request) {
  RequestResult& result = in_flight.result;
  StageTimes& times = result.times;
  StageTimes images;
  {
    const StageTimer timer(waited_ms_);
    encoder_.finish(request, images);
  }
  images.total_ms = images[Stage::kImageDecode] + images[Stage::kImagePreprocess];
  images_ms_ += images.total_ms;
  times.add(images);
  {
    const StageTimer total(times.total_ms);
    const StageTimer timer(times[Stage::kTokenize]);
    result.special_tokens = encoder_.tokenizer().count_added_tokens(request.request.state());
  }
  const std::size_t n_in_state = result.special_tokens;
  const std::size_t n_questions = request.request.question_count();
  for (std::size_t i = 0; i < n_questions; ++i) {
    const auto pending = std::make_shared<Pending>(
        Pending{.request = &in_flight, .index = i, .encoded = {}, .images = request.images});
    {
      const StageTimer total(times.total_ms);
      pending->encoded = encoder_.encode(request, i, times);
      const StageTimer timer(times[Stage::kTokenize]);
      const std::size_t n_in_prompt =
          encoder_.tokenizer().count_added_tokens(pending->encoded.question.prompt);
      result.special_tokens += n_in_prompt - std::min(n_in_prompt, n_in_state);  // the state's once
    }
    // As long as the prompt, and not needed.
    std::exchange(pending->encoded.text, {});
    std::exchange(pending->encoded.question.prompt, {});
    ++in_flight.n_pending;
    result.input_tokens += pending->n_rows();
    hold(pending);
  }
}

/// Queues a question and has passes computed when enough are queued.
void Evaluator::hold(PendingPtr pending) {
  const std::int64_t n_shared =
      pending_.empty() ? 0
                       : sharable_rows(pending_.back()->rows(), pending->rows(), options_.reuse);
  pending->n_new_rows = static_cast<std::int64_t>(pending->n_rows()) - n_shared;
  pending_rows_ += pending->n_new_rows;
  held_.add(pending->n_bytes(), pending->images);
  pending_.push_back(std::move(pending));
  if (is_full(&Evaluator::has_too_large_questions)) {
    run_window(Extent::kAll);
  } else if (options_.reuse != PrefixReuse::kFile &&
             pending_rows_ > static_cast<std::int64_t>(options_.batch_tokens) &&
             pending_.size() >= plan_again_at_) {
    run_window(Extent::kAllButLastPass);
  }
}

/// Turns a request into an error; its questions that still wait are dropped.
void Evaluator::withdraw(InFlight& request, const Error& error) {
  while (!pending_.empty() && pending_.back()->request == &request) {  // the latest: all at the end
    const Pending& pending = *pending_.back();
    pending_rows_ -= pending.n_new_rows;
    held_.remove(pending.n_bytes(), pending.images);
    --request.n_pending;
    pending_.pop_back();
  }
  request.result.error = error;
}

/// Hands over the finished requests at the front.
void Evaluator::deliver() {
  while (!requests_.empty() && requests_.front().complete && requests_.front().n_pending == 0) {
    InFlight& front = requests_.front();
    if (front.result.error) front.result.questions.clear();
    front.result.latency_ms =
        std::chrono::duration<double, std::milli>(Clock::now() - front.submitted).count();
    RequestResult result = std::move(front.result);
    requests_.pop_front();  // before `done` may throw: delivered once
    done_(std::move(result));
  }
}

}  // namespace jemm

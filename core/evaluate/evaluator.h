// Requests to answers through an engine: questions of several requests share forward passes, and
// results come out in the order in which requests went in.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "checkpoint/config.h"
#include "contract/answer.h"
#include "engine/engine.h"
#include "engine/timings.h"
#include "evaluate/encoder.h"

namespace jemm {

struct QuestionResult {
  std::string id;
  Answer answer;
};

/// What became of one request.
struct RequestResult {
  std::optional<Error> error;             ///< set: refused or failed, `questions` is empty
  std::vector<QuestionResult> questions;  ///< in request order
  std::size_t input_tokens = 0;           ///< over all questions
  std::size_t special_tokens = 0;         ///< added tokens spelled by the request's text
  StageTimes times;
  double latency_ms = 0;  ///< from submit to result, waiting included
};

struct EvaluatorOptions {
  /// A pass is run before its rows would exceed this. A longer question runs alone.
  std::size_t batch_tokens = 2048;
  /// Requests held back, finished or not, before a pass is forced.
  std::size_t max_in_flight = 256;
  /// Vision rows that are kept for images that may come again.
  std::size_t image_cache_bytes = std::size_t{256} << 20;
};

/// Not thread-safe. Memory is bounded by the options, by the images of one request and of one pass,
/// and by the answers of the requests in flight. An image is decoded, cut and looked at once,
/// whatever the number of questions and requests that show it, while the cache has it.
class Evaluator {
 public:
  using Done = std::function<void(RequestResult&&)>;

  /// The references must outlive the evaluator. `done` is called once a submitted request, in
  /// order, from submit or flush.
  Evaluator(const Encoder& encoder, Engine& engine, const DecisionConfig& decision,
            const EvaluatorOptions& options, Done done);

  /// Reads `body` and queues its questions, running passes as they fill. `image_files`: the bytes
  /// of images beside those in the body. Refused requests become results; Error(kDevice) of the
  /// engine passes through.
  void submit(std::string_view body, std::vector<std::string> image_files = {});
  /// Takes a place in the order for a request that could not even be read.
  void refuse(const Error& error);
  /// Runs what is queued; afterwards every submitted request is done.
  void flush();
  /// Requests submitted and not yet done.
  std::size_t in_flight() const { return requests_.size(); }

 private:
  using Clock = std::chrono::steady_clock;

  /// A submitted request: its result so far, and how many of its questions await a pass.
  struct InFlight {
    RequestResult result;
    Clock::time_point submitted;
    std::size_t n_pending = 0;
    bool complete = false;  ///< every question is queued or the request has failed
  };
  /// A question that awaits the next pass. Requests in flight never move (std::list).
  struct Pending {
    InFlight* request;
    EncodedQuestion encoded;
    std::vector<EncodedImagePtr> images;

    std::size_t n_rows() const { return encoded.token_ids.size(); }
    std::size_t n_image_rows() const;
  };

  void queue_questions(InFlight& request, std::string_view body,
                       std::vector<std::string> image_files);
  void withdraw(InFlight& request, const Error& error);
  void settle(InFlight& request);
  void run_pass();
  void answer_pass();
  void run_apart(const OutOfMemory& error);
  void run_vision();
  std::vector<LabelLogits> run_text(StageTimes& times);
  void share_time(const StageTimes& times, std::size_t (Pending::*n_rows)() const);
  void finish_question(const Pending& pending, const LabelLogits& logits);
  void deliver();

  const Encoder& encoder_;
  Engine& engine_;
  DecisionConfig decision_;
  EvaluatorOptions options_;
  Done done_;
  std::list<InFlight> requests_;
  std::vector<Pending> pending_;
  std::size_t pending_rows_ = 0;
  ImageCache images_;
};

}  // namespace jemm

// Requests to answers through an engine: questions of several requests share forward passes, the
// next pass is prepared while one is computed, and results come out in the order in which requests
// went in.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <list>
#include <memory>
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
#include "evaluate/held_memory.h"
#include "evaluate/pass_job.h"
#include "evaluate/pass_runner.h"
#include "evaluate/prompt_rows.h"
#include "evaluate/reuse_summary.h"
#include "plan/cost_profile.h"

namespace jemm {

struct QuestionResult {
  std::string id;
  Answer answer;
};

/// How a request's answers compare with those of its questions alone and whole.
struct ReuseAudit {
  bool equal_bits = true;
  double difference = 0;  ///< the largest of a probability
};

/// What became of one request.
struct RequestResult {
  std::optional<Error> error;             ///< set: refused or failed, `questions` is empty
  std::vector<QuestionResult> questions;  ///< in request order
  std::size_t input_tokens = 0;           ///< over all questions
  std::size_t rows_computed = 0;          ///< of them; the others had been computed for others
  std::size_t special_tokens = 0;         ///< added tokens spelled by the request's text
  std::optional<ReuseAudit> audit;        ///< when it was asked for
  StageTimes times;
  double latency_ms = 0;  ///< from submit to result, waiting included
};

struct EvaluatorOptions {
  /// Most rows of a pass. A longer question runs alone.
  std::size_t batch_tokens = 2048;
  /// Requests held back, finished or not, before a pass is forced; with kFile reuse_memory alone
  /// bounds them.
  std::size_t max_in_flight = 256;
  /// Vision rows that are kept for images that may come again.
  std::size_t image_cache_bytes = std::size_t{256} << 20;
  PrefixReuse reuse = PrefixReuse::kOff;
  /// Bytes of questions, answers and images that wait to share rows; reuse alone.
  std::size_t reuse_memory = std::size_t{256} << 20;
  /// Most segments of a pass: each holds a recurrent state.
  std::int64_t max_segments = std::numeric_limits<std::int64_t>::max();
  CostProfile profile = linear_profile(1, "linear");
  /// Asked between passes and, in flush, before each request in line; true gives up what has not
  /// been handed to the engine.
  std::function<bool()> stop = {};
};

/// Whether a request's questions are computed once more, alone and whole, and compared.
enum class Audit { kNo, kYes };

/// Not thread-safe. The engine runs on a thread of the evaluator's, one call at a time, and is the
/// evaluator's from submit to the end of flush. Which questions share a pass depends on the
/// requests and their order, never on how long anything takes: a pass is answered when the next but
/// one has been handed to the engine, or when what waits is too much, or in flush. Images are
/// decoded ahead, on threads of their own: a request with new ones, and those behind it, wait in
/// line while a few more are read. Memory is bounded by the options, by the images of three passes
/// and of those in line, and by the answers of the requests in flight. An image is decoded, cut and
/// looked at once, whatever the number of questions and requests that show it, while the cache has
/// it.
class Evaluator {
 public:
  using Done = std::function<void(RequestResult&&)>;

  /// The references must outlive the evaluator. `done` is called once a submitted request, in
  /// order, from submit or flush.
  Evaluator(const Encoder& encoder, Engine& engine, const DecisionConfig& decision,
            const EvaluatorOptions& options, Done done);

  /// Reads `body` and queues its questions, or those of requests in line before it, handing passes
  /// to the engine as they fill. `image_files`: the bytes of images beside those in the body.
  /// Refused requests become results. Error(kDevice) of the engine passes through, from here or
  /// from flush, when all requests of earlier passes are done; nothing more is computed then. The
  /// same goes for what `done` throws: its result counts as handed over.
  void submit(std::string_view body, std::vector<std::string> image_files = {},
              Audit audit = Audit::kNo);
  /// Takes a place in the order for a request that could not even be read.
  void refuse(const Error& error);
  /// Runs what is queued; afterwards every submitted request is done, or given up (options.stop).
  void flush();
  /// Requests submitted and not yet done.
  std::size_t in_flight() const { return requests_.size(); }
  /// Of all passes so far.
  const ReuseSummary& summary() const { return summary_; }
  /// Time of submit and flush in the engine and in opening images: waiting for them, or doing their
  /// work where no thread had begun it.
  double waited_ms() const { return waited_ms_; }
  /// Time that opening images has taken, on whichever thread; of accepted requests alone.
  double images_ms() const { return images_ms_; }

 private:
  using Clock = std::chrono::steady_clock;

  /// A submitted request: its result so far, and how many of its questions have no answer yet.
  struct InFlight {
    RequestResult result;
    Clock::time_point submitted;
    std::uint64_t number = 0;  ///< from 1
    std::size_t n_pending = 0;
    bool complete = false;  ///< every question is queued or the request has failed
    Audit audit = Audit::kNo;
  };
  /// A request whose questions are not queued yet.
  struct InLine {
    InFlight* request;
    std::optional<EncodedRequest> encoded = {};  ///< its images perhaps still at work
    std::optional<Error> refused = {};           ///< in its place
    std::size_t n_bytes = 0;                     ///< of body and files
    std::size_t n_new_images = 0;
  };
  /// A question without an answer. Requests in flight never move (std::list).
  struct Pending {
    InFlight* request;
    std::size_t index;  ///< in the request
    EncodedQuestion encoded;
    std::vector<EncodedImagePtr> images;
    std::int64_t n_new_rows = 0;  ///< in pending_rows_
    bool is_launched = false;     ///< in a pass

    std::size_t n_rows() const { return encoded.token_ids.size(); }
    std::size_t n_bytes() const;  ///< without images
    PromptRows rows() const {
      return {encoded.token_ids, encoded.positions, encoded.image_begins, images, request};
    }
  };
  using PendingPtr = std::shared_ptr<Pending>;  // does not move: passes look into it
  /// The questions that are planned together, by sequence.
  struct Window {
    std::vector<PendingPtr> questions;
    std::vector<PromptRows> prompts;
    ReusePlan plan;

    const PendingPtr& operator[](const PlannedRead& read) const {
      return questions[static_cast<std::size_t>(read.sequence)];
    }
  };
  /// A pass that has been handed to the engine.
  struct Launched {
    std::vector<PendingPtr> questions;  ///< by read
    PassJob job;
  };
  /// Of the questions that wait. kRest: all, and no more will come before they are answered.
  enum class Extent { kAllButLastPass, kAll, kRest };

  // evaluator.cpp: requests come and go.
  InFlight& add_request();
  bool is_next_due() const;
  void take_next();
  void queue_questions(InFlight& request, EncodedRequest& encoded);
  void hold(PendingPtr pending);
  void withdraw(InFlight& request, const Error& error);
  void settle(InFlight& request);
  bool has_too_many_requests() const;
  bool has_too_large_questions() const;
  bool is_full(bool (Evaluator::*too_much)() const);
  void deliver();

  // passes.cpp: what they wait for.
  void run_window(Extent extent);
  Window plan_window(Extent extent);
  void release_launched();
  void launch(const Window& window, const PlannedPass& pass, Extent extent);
  void collect();
  void finish_question(Pending& pending, const PassQuestion& computed);
  void add_answer(Pending& pending, const LabelLogits& logits);
  void add_audit(Pending& pending, const PassQuestion& computed);
  double temperature(const Pending& pending) const;

  const Encoder& encoder_;
  Engine& engine_;
  DecisionConfig decision_;
  EvaluatorOptions options_;
  Done done_;
  std::list<InFlight> requests_;
  std::uint64_t n_requests_ = 0;  ///< ever
  ImageCache images_;
  std::deque<InLine> line_;          ///< the last of requests_
  std::vector<PendingPtr> pending_;  ///< await a pass
  std::int64_t pending_rows_ = 0;    ///< about as many as they will compute
  /// Questions that must wait before another plan is tried: twice as many as when one had no full
  /// pass, so that planning stays cheap where the rows are fewer than they look.
  std::size_t plan_again_at_ = 0;
  HeldMemory held_;          ///< of the questions that have no answer yet
  bool is_stopped_ = false;  ///< by options.stop or an error: what waits stays undone
  ReuseSummary summary_;
  double waited_ms_ = 0, images_ms_ = 0;
  std::list<Launched> launched_;  ///< not answered yet, oldest first
  PassRunner runner_;             ///< at work on them: gone before they are
};

}  // namespace jemm

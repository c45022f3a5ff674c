// Requests answered once in one mode, with the time of the engine apart.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/measure.h"
#include "evaluate/evaluator.h"

namespace jemm::cli {

/// A request of a workload, in memory.
struct BenchRequest {
  std::string id;  ///< for messages
  std::string body;
  std::vector<std::string> image_files;
  std::optional<Error> error;  ///< it could not be read: answered with this refusal
};

/// Every run has an evaluator of its own, so that no image or text is known from an earlier one.
class RequestSubject : public Subject {
 public:
  /// The references must outlive the subject.
  RequestSubject(const Encoder& encoder, Engine& engine, const DecisionConfig& decision,
                 const EvaluatorOptions& options, const std::vector<BenchRequest>& requests)
      : encoder_(encoder),
        engine_(engine),
        decision_(decision),
        options_(options),
        requests_(requests) {}

  /// Timed: from the first request's bytes in memory to the last answer's line. Error(kDevice) of
  /// the engine passes through.
  RunSample run(Outputs& outputs) override;

  /// Of the last run: tokens of all prompts, questions answered, requests refused, and why the
  /// first of them was.
  std::size_t n_tokens() const { return n_tokens_; }
  std::size_t n_questions() const { return n_questions_; }
  std::size_t n_refused() const { return n_refused_; }
  const std::string& first_refusal() const { return first_refusal_; }

 private:
  void take(const RequestResult& result, const std::string& id, RunSample& sample,
            Outputs& outputs);

  const Encoder& encoder_;
  Engine& engine_;
  const DecisionConfig& decision_;
  EvaluatorOptions options_;
  const std::vector<BenchRequest>& requests_;
  std::size_t n_tokens_ = 0, n_questions_ = 0, n_refused_ = 0;
  std::string first_refusal_;
};

}  // namespace jemm::cli

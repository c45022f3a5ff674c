// Prefix reuse as a user asks for it: options, the cost profile, the audit of what it has done.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/config.h"
#include "evaluate/evaluator.h"
#include "model.h"

namespace CLI {
class App;
}

namespace jemm::cli {

struct ReuseOptions {
  std::size_t batch_tokens = EvaluatorOptions{}.batch_tokens;
  PrefixReuse mode = PrefixReuse::kOff;
  std::uint64_t memory = EvaluatorOptions{}.reuse_memory;
  double audit_rate = 0;
  std::optional<double> audit_tolerance;
};

/// Adds --batch-tokens and --reuse-memory.
void add_pass_options(CLI::App& command, ReuseOptions& options);
/// Adds --prefix-reuse, --audit-reuse and --audit-tolerance.
void add_reuse_options(CLI::App& command, ReuseOptions& options);

/// For an evaluator of that mode. --reuse-memory bounds what waits and the recurrent states of a
/// pass, each.
EvaluatorOptions evaluator_options(const ReuseOptions& options, PrefixReuse mode,
                                   const TextConfig& text);

/// For answering with that engine in the options' mode. With reuse on a GPU its costs are measured.
EvaluatorOptions evaluator_options(const ReuseOptions& options, const TextConfig& text,
                                   const EngineOptions& engine_options, Engine& engine);

/// Whether the engine gives the same bits whatever shares a pass, so that reuse cannot show.
bool is_exact(const EngineOptions& options);

/// What reuse may change in a probability: nothing on an exact engine. Elsewhere 0.05, twice the
/// median by which the reference in BF16 differs from itself in FP32 (0.024 with random weights at
/// full size): reuse changes the shape of products, which is noise of that kind.
double audit_tolerance(const ReuseOptions& options, const EngineOptions& engine);

/// Chooses about that share of all requests, the same in every run.
bool is_audited(std::string_view request_sha256, double rate);

/// What the audits of a run have shown.
class AuditTally {
 public:
  void add(const ReuseAudit& audit);
  /// Tolerance 0 asks for equal bits.
  bool is_over(double tolerance) const {
    return largest_ > tolerance || (tolerance == 0 && n_different_ > 0);
  }
  /// "3 requests were computed again without reuse: ..."
  std::string text(double tolerance) const;
  std::uint64_t n_audited() const { return n_audited_; }

 private:
  std::uint64_t n_audited_ = 0;
  std::uint64_t n_different_ = 0;
  double largest_ = 0;
};

}  // namespace jemm::cli

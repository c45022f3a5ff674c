#include "reuse.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "checkpoint/memory_need.h"
#include "evaluate/measure_profile.h"
#include "validators.h"

namespace jemm::cli {

void add_pass_options(CLI::App& command, ReuseOptions& options) {
  command
      .add_option("--batch-tokens", options.batch_tokens,
                  "Most token rows of one pass; several requests share it")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 20))
      ->capture_default_str();
  command
      .add_option("--reuse-memory", options.memory,
                  "Most bytes (256MiB, 1GB, ...) of requests that wait to share rows, and of the "
                  "recurrent states of a pass with reuse")
      ->transform(CLI::AsSizeValue(true))
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 50))
      ->default_str(fmt::format("{}MiB", options.memory >> 20));
}

void add_reuse_options(CLI::App& command, ReuseOptions& options) {
  std::vector<std::pair<std::string, PrefixReuse>> modes;
  for (const PrefixReuse mode : {PrefixReuse::kOff, PrefixReuse::kRequest, PrefixReuse::kFile}) {
    modes.emplace_back(prefix_reuse_name(mode), mode);
  }
  add_choice(command, "--prefix-reuse", options.mode, modes,
             "request: a request's questions share their state and images; file: so do the "
             "requests of the input, which must be regular files");
  CLI::Option* audit =
      command
          .add_option("--audit-reuse", options.audit_rate,
                      "Compute this share of the requests once more without reuse, and compare")
          ->check(share_validator());
  command
      .add_option("--audit-tolerance", options.audit_tolerance,
                  "Exit 4 when an audited probability differs by more; default: 0, equal bits, on "
                  "the CPU and with --deterministic, else 0.05")
      ->check(share_validator())
      ->needs(audit);
}

EvaluatorOptions evaluator_options(const ReuseOptions& options, PrefixReuse mode,
                                   const TextConfig& text) {
  EvaluatorOptions result{.batch_tokens = options.batch_tokens, .reuse = mode};
  if (mode == PrefixReuse::kOff) return result;
  result.reuse_memory = options.memory;
  const std::uint64_t n_states = options.memory / pass_memory(text, sizeof(float)).a_segment;
  result.max_segments =
      static_cast<std::int64_t>(std::clamp(n_states, std::uint64_t{1}, std::uint64_t{1} << 32));
  return result;
}

EvaluatorOptions evaluator_options(const ReuseOptions& options, const TextConfig& text,
                                   const EngineOptions& engine_options, Engine& engine) {
  EvaluatorOptions result = evaluator_options(options, options.mode, text);
  if (options.mode != PrefixReuse::kOff && choose_engine(engine_options).device != "cpu") {
    result.profile = measure_profile(engine, static_cast<std::int64_t>(result.batch_tokens));
  }
  return result;
}

bool is_exact(const EngineOptions& options) {
  return options.deterministic || choose_engine(options).device == "cpu";
}

double audit_tolerance(const ReuseOptions& options, const EngineOptions& engine) {
  return options.audit_tolerance.value_or(is_exact(engine) ? 0 : 0.05);
}

bool is_audited(std::string_view request_sha256, double rate) {
  constexpr std::size_t kDigits = 13;  // 52 bits: a double holds them all
  std::uint64_t value = 0;
  std::from_chars(request_sha256.data(), request_sha256.data() + kDigits, value, 16);
  return static_cast<double>(value) < rate * static_cast<double>(std::uint64_t{1} << 4 * kDigits);
}

void AuditTally::add(const ReuseAudit& audit) {
  ++n_audited_;
  if (audit.equal_bits) return;
  ++n_different_;
  largest_ = std::max(largest_, audit.difference);
}

std::string AuditTally::text(double tolerance) const {
  const std::string what = fmt::format("{} requests were computed again without reuse", n_audited_);
  if (n_different_ == 0) return what + ": equal bits";
  return fmt::format("{}: {} differ, by up to {:.3g} in probability; tolerance {:.3g}", what,
                     n_different_, largest_, tolerance);
}

}  // namespace jemm::cli

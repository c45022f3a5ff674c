// What a run's passes have come to: rows, passes, trees, and what was left alone.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/reuse_plan.h"

namespace jemm {

/// A common beginning and who has it.
struct SharedTree {
  PrefixDecision decision;
  std::uint64_t n_requests = 0;
  std::uint64_t first_request = 0;  ///< its place among the requests submitted, from 1
};

struct ReuseSummary {
  struct Fate {
    std::uint64_t n = 0;              ///< common beginnings
    std::int64_t rows_saved = 0;      ///< see PrefixDecision
    std::vector<SharedTree> largest;  ///< by rows_saved, then by rows; at most kLargest
  };
  static constexpr std::size_t kLargest = 5;

  std::uint64_t n_questions = 0;
  std::uint64_t n_passes = 0;
  std::uint64_t n_plans = 0;
  std::int64_t rows_computed = 0;
  std::int64_t rows_reused = 0;
  std::int64_t most_rows = 0;      ///< of a pass
  std::int64_t most_segments = 0;  ///< of a pass
  double predicted_ms = 0;         ///< by the cost profile
  std::array<Fate, kPrefixFates> fates;

  /// Of all questions, those of requests that were refused later among them.
  std::int64_t n_rows() const { return rows_computed + rows_reused; }
  const Fate& operator[](PrefixFate fate) const { return fates[static_cast<std::size_t>(fate)]; }

  /// Adds the first passes of a plan. `n_rows` and `requests`: rows and request of every
  /// sequence. A tree of which a part is left for another plan counts here and there.
  void add(const ReusePlan& plan, std::size_t n_passes_run, std::span<const std::int64_t> n_rows,
           std::span<const std::uint64_t> requests);
};

}  // namespace jemm

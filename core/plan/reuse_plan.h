// From sequences of rows with common beginnings to passes: what is computed once, with what else.
// Knows lengths and prices, no tokens.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "plan/cost_profile.h"
#include "plan/prefix_tree.h"

namespace jemm {

/// Rows [begin, begin + n_rows) of a sequence; sequences below it begin with the same rows.
struct PlannedSegment {
  std::int32_t parent = -1;  ///< index of an earlier segment of the pass, or -1
  std::int64_t sequence = 0;
  std::int64_t begin = 0;
  std::int64_t n_rows = 0;
};

/// A sequence ends where the segment ends.
struct PlannedRead {
  std::int64_t sequence = 0;
  std::int32_t segment = 0;
  std::int64_t n_computed = 0;  ///< rows of the pass that no earlier read of it has needed
};

struct PlannedPass {
  std::vector<PlannedSegment> segments;  ///< parents before children
  std::vector<PlannedRead> reads;        ///< consecutive sequences
  std::int64_t n_rows = 0;
  std::int64_t n_levels = 0;  ///< of segments
  double ms = 0;              ///< by the profile
};

struct ReusePlan {
  std::vector<PlannedPass> passes;        ///< together they read every sequence once, in order
  std::vector<PrefixDecision> decisions;  ///< all common beginnings and what became of them
};

struct PlanLimits {
  std::int64_t max_rows = 2048;  ///< of a pass; a longer sequence has a pass for itself
  /// Of a pass. Each holds a recurrent state.
  std::int64_t max_segments = std::numeric_limits<std::int64_t>::max();
  /// The last pass will be planned again, with more.
  bool more_to_come = false;
};

/// Which common beginnings to share and which sequences go into a pass together, by cost. The
/// sequences stay in order. A tree that is over the limits is cut between two of its sequences: its
/// beginning is computed once in each pass. The choice of splits takes them to fit; the passes are
/// then the cheapest for these splits.
ReusePlan plan_reuse(const PrefixOrder& order, const CostProfile& profile,
                     const PlanLimits& limits);

/// A pass that computes one sequence alone and whole.
PlannedPass whole_pass(std::int64_t sequence, std::int64_t n_rows);

}  // namespace jemm

// What the layers need of a forest: its segments that have rows, and how they follow each other.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/forest.h"

namespace jemm {

/// A segment with rows. Empty segments are left out: a run's parent is the nearest ancestor with
/// rows, so that a chain of runs is never longer than its rows.
struct Run {
  std::int32_t parent = -1;      ///< index of an earlier run, or -1
  std::int64_t row_begin = 0;    ///< first row in the packed matrix
  std::int64_t n_rows = 0;       ///< at least 1
  std::int64_t n_before = 0;     ///< rows of all ancestors together
  std::int32_t last_child = -1;  ///< index of the last run that starts from this one, or -1

  std::int64_t n_chain() const { return n_before + n_rows; }
};

/// The runs in the order of their rows. Requires a checked forest.
std::vector<Run> runs_of(const Forest& forest);

/// Packed row of every place of the chain that ends in `run`: [n_chain]. Chain place p holds the
/// token at distance p from the root's start (not its rotary position).
std::vector<std::int64_t> chain_rows(const std::vector<Run>& runs, std::size_t run);

/// Where recurrent states live while the runs are computed in their order. The last child of a run
/// takes over its state, the others start from a copy; so a chain needs one slot however long it
/// is, and no run sees what another has done to a state.
struct StateSlots {
  std::vector<std::int32_t> slot;  ///< per run: holds its state from its start to its end, and on
  std::int32_t n_slots = 0;
};
StateSlots assign_state_slots(const std::vector<Run>& runs);

/// Index of the run that holds the packed row.
std::size_t run_of_row(const std::vector<Run>& runs, std::int64_t row);

}  // namespace jemm

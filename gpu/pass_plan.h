// What the kernels need of a forest, as arrays of integers: all of it host arithmetic on lengths.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/kernels/kernels.h"
#include "plan/forest.h"

namespace jemm::gpu {

/// Runs of the same depth, which the delta rule computes at once.
struct DeltaLevel {
  std::int32_t first_run = 0, n_runs = 0;  // in PassPlan::delta_runs

  bool operator==(const DeltaLevel&) const = default;
};

struct PassPlan {
  std::vector<std::int32_t> previous;  // [rows, conv_width - 1], see causal_conv
  std::vector<DeltaChunk> chunks;      // the chunks of each run together
  std::vector<DeltaRun> delta_runs;    // by depth
  std::vector<DeltaLevel> levels;
  std::int32_t n_slots = 0;  // recurrent states that are kept at a time
  std::vector<AttentionRun> attention_runs;
  std::vector<AttentionTile> tiles;  // by the place of their last query, ascending
};

/// Requires a checked forest of less than 2^31 rows. A state lives in a slot from its run's depth
/// to the next one; slots are used again after that, so a chain needs two however long it is.
PassPlan plan_pass(const Forest& forest, std::int64_t conv_width);

}  // namespace jemm::gpu

// Runs to chunks, levels, slots and tiles.
#include "gpu/pass_plan.h"

#include <algorithm>
#include <utility>

#include "plan/runs.h"

namespace jemm::gpu {
namespace {

std::int32_t narrow(std::int64_t n) {
  return static_cast<std::int32_t>(n);
}

void plan_previous(const std::vector<Run>& runs, std::int64_t n_rows, std::int64_t n_before,
                   std::vector<std::int32_t>& previous) {
  previous.assign(static_cast<std::size_t>(n_rows * n_before), -1);
  for (const Run& run : runs) {
    for (std::int64_t i = 0; i < run.n_rows; ++i) {
      const std::int64_t row = run.row_begin + i;
      for (std::int64_t back = 1; back <= n_before; ++back) {
        std::int64_t from = -1;
        if (back == 1) {
          if (i > 0) {
            from = row - 1;
          } else if (run.parent >= 0) {
            const Run& parent = runs[static_cast<std::size_t>(run.parent)];
            from = parent.row_begin + parent.n_rows - 1;
          }
        } else {  // one before what stands one place nearer
          const std::int32_t nearer =
              previous[static_cast<std::size_t>(row * n_before + n_before - (back - 1))];
          if (nearer >= 0) {
            from = previous[static_cast<std::size_t>(nearer * n_before + n_before - 1)];
          }
        }
        previous[static_cast<std::size_t>(row * n_before + n_before - back)] = narrow(from);
      }
    }
  }
}

void plan_delta(const std::vector<Run>& runs, PassPlan& plan) {
  std::vector<std::int32_t> depth;
  std::vector<DeltaRun> in_order;
  std::int32_t n_levels = 0;
  for (const Run& run : runs) {
    depth.push_back(run.parent < 0 ? 0 : depth[static_cast<std::size_t>(run.parent)] + 1);
    n_levels = std::max(n_levels, depth.back() + 1);
    DeltaRun delta{.first_chunk = narrow(std::ssize(plan.chunks)), .n_chunks = 0};
    for (std::int64_t i = 0; i < run.n_rows;) {
      const std::int64_t to_boundary = kDeltaChunk - (run.n_before + i) % kDeltaChunk;
      const std::int64_t n = std::min(to_boundary, run.n_rows - i);
      plan.chunks.push_back({narrow(run.row_begin + i), narrow(n)});
      ++delta.n_chunks;
      i += n;
    }
    in_order.push_back(delta);
  }

  std::vector<std::vector<std::size_t>> by_depth(static_cast<std::size_t>(n_levels));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    by_depth[static_cast<std::size_t>(depth[i])].push_back(i);
  }
  std::vector<std::int32_t> unused, held_before, held;  // slots
  for (const std::vector<std::size_t>& level : by_depth) {
    plan.levels.push_back({narrow(std::ssize(plan.delta_runs)), narrow(std::ssize(level))});
    for (const std::size_t i : level) {
      DeltaRun& delta = in_order[i];
      if (runs[i].parent >= 0) {
        delta.from_slot = in_order[static_cast<std::size_t>(runs[i].parent)].to_slot;
      }
      if (runs[i].last_child >= 0) {
        if (unused.empty()) unused.push_back(plan.n_slots++);
        delta.to_slot = unused.back();
        unused.pop_back();
        held.push_back(delta.to_slot);
      }
      plan.delta_runs.push_back(delta);
    }
    // Those of the level before have now been read.
    unused.insert(unused.end(), held_before.begin(), held_before.end());
    held_before = std::exchange(held, {});
  }
}

void plan_attention(const std::vector<Run>& runs, PassPlan& plan) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Run& run = runs[i];
    plan.attention_runs.push_back({run.parent, narrow(run.row_begin), narrow(run.n_before)});
    for (std::int64_t first = 0; first < run.n_rows; first += kAttentionTileRows) {
      plan.tiles.push_back(
          {.run = narrow(static_cast<std::int64_t>(i)),
           .row_begin = narrow(run.row_begin + first),
           .n_rows = narrow(std::min<std::int64_t>(kAttentionTileRows, run.n_rows - first)),
           .first_place = narrow(run.n_before + first)});
    }
  }
  std::stable_sort(plan.tiles.begin(), plan.tiles.end(), [](const auto& a, const auto& b) {
    return a.first_place + a.n_rows < b.first_place + b.n_rows;
  });
}

}  // namespace

PassPlan plan_pass(const Forest& forest, std::int64_t conv_width) {
  const std::vector<Run> runs = runs_of(forest);
  PassPlan plan;
  plan_previous(runs, forest.n_rows(), conv_width - 1, plan.previous);
  plan_delta(runs, plan);
  plan_attention(runs, plan);
  return plan;
}

}  // namespace jemm::gpu

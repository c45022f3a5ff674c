// Segments to runs of rows.
#include "plan/runs.h"

#include <algorithm>
#include <numeric>

namespace jemm {

std::vector<Run> runs_of(const Forest& forest) {
  std::vector<Run> runs;
  std::vector<std::int32_t> run_at_or_above(forest.segments.size());  // per segment; -1: none
  for (std::size_t i = 0; i < forest.segments.size(); ++i) {
    const Segment& s = forest.segments[i];
    const std::int32_t parent =
        s.parent < 0 ? -1 : run_at_or_above[static_cast<std::size_t>(s.parent)];
    run_at_or_above[i] = parent;
    if (s.n_rows == 0) continue;
    run_at_or_above[i] = static_cast<std::int32_t>(runs.size());
    if (parent >= 0) runs[static_cast<std::size_t>(parent)].last_child = run_at_or_above[i];
    runs.push_back({.parent = parent,
                    .row_begin = s.row_begin,
                    .n_rows = s.n_rows,
                    .n_before = s.n_before,
                    .last_child = -1});
  }
  return runs;
}

std::vector<std::int64_t> chain_rows(const std::vector<Run>& runs, std::size_t run) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(runs[run].n_chain()));
  for (auto i = static_cast<std::int64_t>(run); i >= 0;) {
    const Run& r = runs[static_cast<std::size_t>(i)];
    std::iota(rows.begin() + r.n_before, rows.begin() + r.n_chain(), r.row_begin);
    i = r.parent;
  }
  return rows;
}

StateSlots assign_state_slots(const std::vector<Run>& runs) {
  StateSlots slots;
  std::vector<std::int32_t> unused;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::int32_t parent = runs[i].parent;
    std::int32_t slot = 0;
    if (parent >= 0 &&
        runs[static_cast<std::size_t>(parent)].last_child == static_cast<std::int32_t>(i)) {
      slot = slots.slot[static_cast<std::size_t>(parent)];
    } else if (!unused.empty()) {
      slot = unused.back();
      unused.pop_back();
    } else {
      slot = slots.n_slots++;
    }
    slots.slot.push_back(slot);
    if (runs[i].last_child < 0) unused.push_back(slot);
  }
  return slots;
}

std::size_t run_of_row(const std::vector<Run>& runs, std::int64_t row) {
  const auto after = std::upper_bound(runs.begin(), runs.end(), row,
                                      [](std::int64_t r, const Run& s) { return r < s.row_begin; });
  return static_cast<std::size_t>(after - runs.begin()) - 1;
}

}  // namespace jemm

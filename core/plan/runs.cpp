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
    if (parent >= 0) runs[static_cast<std::size_t>(parent)].has_children = true;
    run_at_or_above[i] = static_cast<std::int32_t>(runs.size());
    runs.push_back({.parent = parent,
                    .row_begin = s.row_begin,
                    .n_rows = s.n_rows,
                    .n_before = s.n_before,
                    .has_children = false});
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

std::size_t run_of_row(const std::vector<Run>& runs, std::int64_t row) {
  const auto after = std::upper_bound(runs.begin(), runs.end(), row,
                                      [](std::int64_t r, const Run& s) { return r < s.row_begin; });
  return static_cast<std::size_t>(after - runs.begin()) - 1;
}

}  // namespace jemm

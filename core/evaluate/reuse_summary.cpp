#include "evaluate/reuse_summary.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace jemm {
namespace {

bool is_larger(const SharedTree& a, const SharedTree& b) {
  return std::tuple(a.decision.rows_saved, a.decision.n_rows) >
         std::tuple(b.decision.rows_saved, b.decision.n_rows);
}

void add_decision(const PrefixDecision& decision, std::span<const std::uint64_t> requests,
                  ReuseSummary::Fate& fate) {
  ++fate.n;
  fate.rows_saved += decision.rows_saved;
  SharedTree tree{.decision = decision};
  if (fate.largest.size() == ReuseSummary::kLargest && !is_larger(tree, fate.largest.back()))
    return;
  const std::set<std::uint64_t> distinct(requests.begin() + decision.first,
                                         requests.begin() + decision.last + 1);
  tree.n_requests = distinct.size();
  tree.first_request = *distinct.begin();
  const auto at = std::upper_bound(fate.largest.begin(), fate.largest.end(), tree, is_larger);
  fate.largest.insert(at, tree);
  if (fate.largest.size() > ReuseSummary::kLargest) fate.largest.pop_back();
}

}  // namespace

void ReuseSummary::add(const ReusePlan& plan, std::size_t n_passes_run,
                       std::span<const std::int64_t> n_rows,
                       std::span<const std::uint64_t> requests) {
  ++n_plans;
  std::int64_t n_run = 0;  // sequences
  for (std::size_t i = 0; i < n_passes_run; ++i) {
    const PlannedPass& pass = plan.passes[i];
    ++n_passes;
    n_questions += pass.reads.size();
    rows_computed += pass.n_rows;
    rows_reused -= pass.n_rows;
    most_rows = std::max(most_rows, pass.n_rows);
    most_segments = std::max(most_segments, static_cast<std::int64_t>(pass.segments.size()));
    predicted_ms += pass.ms;
    for (const PlannedRead& read : pass.reads) {
      rows_reused += n_rows[static_cast<std::size_t>(read.sequence)];
      n_run = read.sequence + 1;
    }
  }
  for (const PrefixDecision& decision : plan.decisions) {
    if (decision.first >= n_run) continue;
    add_decision(decision, requests, fates[static_cast<std::size_t>(decision.fate)]);
  }
}

}  // namespace jemm

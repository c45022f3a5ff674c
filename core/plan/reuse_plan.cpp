// Sequences to passes.
#include "plan/reuse_plan.h"

#include <algorithm>

namespace jemm {
namespace {

/// The order without repeats: of equal neighbours only the first stands in it.
struct Distinct {
  PrefixOrder order;
  std::vector<std::int64_t> begins;  // of each in the whole order; one more at the end
};

Distinct distinct(const PrefixOrder& order) {
  Distinct result;
  const std::size_t n = order.n_rows.size();
  for (std::size_t i = 0; i < n; ++i) {
    const bool repeats =
        i > 0 && order.n_common[i] == order.n_rows[i] && order.n_common[i] == order.n_rows[i - 1];
    if (repeats) continue;
    result.order.n_rows.push_back(order.n_rows[i]);
    result.order.n_common.push_back(order.n_common[i]);
    result.begins.push_back(static_cast<std::int64_t>(i));
  }
  result.begins.push_back(static_cast<std::int64_t>(n));
  return result;
}

/// What a pass of consecutive sequences amounts to, as they are added.
class PassSize {
 public:
  void add(std::int64_t sequence_rows, std::int64_t n_shared) {
    if (n_segments == 0) n_shared = 0;
    while (!splits_.empty() && splits_.back() > n_shared) splits_.pop_back();
    if (n_shared > 0 && (splits_.empty() || splits_.back() < n_shared)) {
      splits_.push_back(n_shared);
      ++n_segments;
    }
    ++n_segments;
    n_rows += sequence_rows - n_shared;
    n_levels = std::max(n_levels, static_cast<std::int64_t>(splits_.size()) + 1);
  }
  bool fits(const PlanLimits& limits) const {
    return n_rows <= limits.max_rows && n_segments <= limits.max_segments;
  }

  std::int64_t n_rows = 0;
  std::int64_t n_segments = 0;  // of those that end at a split, one too many
  std::int64_t n_levels = 0;

 private:
  std::vector<std::int64_t> splits_;  // their rows, of those that hold the last sequence
};

class Planner {
 public:
  Planner(const PrefixOrder& order, const CostProfile& profile, const PlanLimits& limits)
      : distinct_(distinct(order)),
        order_(distinct_.order),
        profile_(profile),
        limits_(limits),
        splits_(choose_splits(order_, prices())) {}

  ReusePlan plan() {
    choose_ends();
    ReusePlan plan;
    for (std::size_t i = 0; i < n(); i = ends_[i]) {
      plan.passes.push_back(make_pass(i, ends_[i]));
      pass_begins_.push_back(static_cast<std::int64_t>(i));
    }
    for (const PrefixDecision& decision : splits_.decisions) {
      plan.decisions.push_back(finished(decision));
    }
    return plan;
  }

 private:
  std::size_t n() const { return order_.n_rows.size(); }

  /// A full pass is what rows cost when there are more than fit into one, or will be.
  double rows_ms(std::int64_t n_rows) const {
    if (n_rows <= limits_.max_rows && !limits_.more_to_come) return profile_.rows_ms(n_rows);
    return profile_.rows_ms(limits_.max_rows) * static_cast<double>(n_rows) /
           static_cast<double>(limits_.max_rows);
  }

  /// The price of a row is taken from all rows to the fewest possible: of those that do not fill an
  /// engine fewer may save no time.
  SplitPrices prices() const {
    std::int64_t all = 0, least = 0;
    for (std::size_t i = 0; i < n(); ++i) {
      all += order_.n_rows[i];
      least += order_.n_rows[i] - order_.n_common[i] / kSplitRows * kSplitRows;
    }
    const double row_ms =
        all == least ? 0 : (rows_ms(all) - rows_ms(least)) / static_cast<double>(all - least);
    return {.row_ms = row_ms, .split_ms = profile_.segment_ms + profile_.level_ms};
  }

  double pass_ms(const PassSize& size, bool open) const {
    const double shape_ms =
        profile_.pass_ms(0, size.n_segments, size.n_levels) - profile_.rows_ms(0);
    return shape_ms + (open ? rows_ms(size.n_rows) : profile_.rows_ms(size.n_rows));
  }

  /// The cheapest partition into passes, from the last sequence to the first. Of passes that cost
  /// the same the longest is taken.
  void choose_ends() {
    ends_.assign(n(), 0);
    std::vector<double> cost(n() + 1, 0.0);
    for (std::size_t i = n(); i-- > 0;) {
      PassSize size;
      for (std::size_t j = i; j < n(); ++j) {
        size.add(order_.n_rows[j], splits_.n_shared[j]);
        if (j > i && !size.fits(limits_)) break;
        const double ms = pass_ms(size, limits_.more_to_come && j + 1 == n()) + cost[j + 1];
        if (j > i && ms > cost[i] * (1 + 1e-9)) continue;
        cost[i] = ms;
        ends_[i] = j + 1;
      }
    }
  }

  PlannedPass make_pass(std::size_t begin, std::size_t end) const {
    PlannedPass pass;
    add_sequences(pass, begin, end, 0, -1, 1);
    for (const PlannedSegment& segment : pass.segments) pass.n_rows += segment.n_rows;
    pass.ms = profile_.pass_ms(pass.n_rows, static_cast<std::int64_t>(pass.segments.size()),
                               pass.n_levels);
    return pass;
  }

  /// Sequences that are the same up to row `from`, where `parent` ends.
  void add_sequences(PlannedPass& pass, std::size_t begin, std::size_t end, std::int64_t from,
                     std::int32_t parent, std::int64_t level) const {
    const auto add_segment = [&](std::int64_t to) {
      pass.segments.push_back({parent, distinct_.begins[begin], from, to - from});
      pass.n_levels = std::max(pass.n_levels, level);
      return static_cast<std::int32_t>(pass.segments.size() - 1);
    };
    if (end - begin == 1) {
      const std::int64_t n_rows = order_.n_rows[begin];
      const std::int32_t segment = n_rows > from ? add_segment(n_rows) : parent;
      std::int64_t n_computed = n_rows - (pass.reads.empty() ? 0 : splits_.n_shared[begin]);
      for (std::int64_t i = distinct_.begins[begin]; i < distinct_.begins[begin + 1]; ++i) {
        pass.reads.push_back({i, segment, n_computed});
        n_computed = 0;  // by its repeats
      }
      return;
    }
    const auto shared = splits_.n_shared.begin();
    const auto at = [](std::size_t i) { return static_cast<std::ptrdiff_t>(i); };
    const std::int64_t split = *std::min_element(shared + at(begin) + 1, shared + at(end));
    const bool is_split = split > from;
    const std::int32_t segment = is_split ? add_segment(split) : parent;
    for (std::size_t i = begin; i < end;) {
      std::size_t next = i + 1;
      while (next < end && splits_.n_shared[next] > split) ++next;
      add_sequences(pass, i, next, split, segment, level + (is_split ? 1 : 0));
      i = next;
    }
  }

  /// With the sequences' numbers in the whole order, and what the passes have made of it.
  PrefixDecision finished(PrefixDecision decision) const {
    if (decision.fate == PrefixFate::kShared) {
      const auto pass_of = [&](std::int64_t sequence) {
        return std::upper_bound(pass_begins_.begin(), pass_begins_.end(), sequence);
      };
      decision.n_passes = pass_of(decision.last) - pass_of(decision.first) + 1;
      if (decision.n_passes > 1) decision.fate = PrefixFate::kSharedInParts;
      const std::int64_t again = (decision.n_passes - 1) * decision.n_own;
      decision.rows_saved = std::max(decision.rows_saved - again, std::int64_t{0});
    }
    decision.first = distinct_.begins[static_cast<std::size_t>(decision.first)];
    decision.last = distinct_.begins[static_cast<std::size_t>(decision.last) + 1] - 1;
    return decision;
  }

  const Distinct distinct_;
  const PrefixOrder& order_;
  const CostProfile& profile_;
  const PlanLimits& limits_;
  const Splits splits_;
  std::vector<std::size_t> ends_;  // of the pass that would begin with a sequence
  std::vector<std::int64_t> pass_begins_;
};

}  // namespace

ReusePlan plan_reuse(const PrefixOrder& order, const CostProfile& profile,
                     const PlanLimits& limits) {
  return Planner(order, profile, limits).plan();
}

PlannedPass whole_pass(std::int64_t sequence, std::int64_t n_rows) {
  return {.segments = {{.parent = -1, .sequence = sequence, .begin = 0, .n_rows = n_rows}},
          .reads = {{.sequence = sequence, .segment = 0, .n_computed = n_rows}},
          .n_rows = n_rows,
          .n_levels = 1};
}

}  // namespace jemm

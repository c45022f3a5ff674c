// Plans hold what they promise on random trees: every row once, limits, the cheapest splits, reasons.
#include "plan/reuse_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

namespace jemm {
namespace {

using Sequence = std::vector<int>;

std::int64_t common(const Sequence& a, const Sequence& b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

PrefixOrder order_of(const std::vector<Sequence>& sequences) {
  PrefixOrder order;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    order.n_rows.push_back(static_cast<std::int64_t>(sequences[i].size()));
    order.n_common.push_back(i == 0 ? 0 : common(sequences[i - 1], sequences[i]));
  }
  return order;
}

/// Sorted sequences that branch off each other at random rows.
std::vector<Sequence> random_sequences(std::mt19937& random, int n, std::size_t longest) {
  std::vector<Sequence> sequences;
  const auto below = [&](std::size_t limit) { return random() % limit; };
  for (int i = 0; i < n; ++i) {
    Sequence sequence;
    if (!sequences.empty() && below(5) > 0) {
      sequence = sequences[below(sequences.size())];
      if (below(6) > 0) sequence.resize(below(sequence.size() + 1));
    }
    const std::size_t more = below(4) == 0 ? below(3) : below(longest);
    for (std::size_t k = 0; k < more; ++k) sequence.push_back(static_cast<int>(random() % 1000));
    if (sequence.empty()) sequence.push_back(7);
    sequences.push_back(std::move(sequence));
  }
  std::sort(sequences.begin(), sequences.end());
  return sequences;
}

CostProfile steps() {
  return {.origin = "test",
          .points = {{64, 10}, {256, 15}, {512, 30}, {2048, 130}},
          .segment_ms = 0.4,
          .level_ms = 0.3};
}

void check_plan(const std::vector<Sequence>& sequences, const ReusePlan& plan,
                const PlanLimits& limits) {
  std::int64_t next = 0;
  for (const PlannedPass& pass : plan.passes) {
    std::vector<Sequence> chains;  // by segment
    std::int64_t n_rows = 0, n_computed = 0;
    for (const PlannedSegment& segment : pass.segments) {
      const Sequence& sequence = sequences[static_cast<std::size_t>(segment.sequence)];
      Sequence chain;
      if (segment.parent >= 0) chain = chains[static_cast<std::size_t>(segment.parent)];
      REQUIRE(static_cast<std::int64_t>(chain.size()) == segment.begin);
      CHECK(segment.begin % kSplitRows == 0);
      REQUIRE(segment.n_rows > 0);
      chain.insert(chain.end(), sequence.begin() + segment.begin,
                   sequence.begin() + segment.begin + segment.n_rows);
      chains.push_back(chain);
      n_rows += segment.n_rows;
    }
    std::set<std::int64_t> used;
    for (const PlannedRead& read : pass.reads) {
      REQUIRE(read.sequence == next++);
      CHECK(chains[static_cast<std::size_t>(read.segment)] ==
            sequences[static_cast<std::size_t>(read.sequence)]);
      CHECK(read.n_computed >= 0);
      n_computed += read.n_computed;
    }
    CHECK(pass.n_rows == n_rows);
    CHECK(n_computed == n_rows);
    const bool is_one = std::all_of(pass.reads.begin(), pass.reads.end(), [&](const auto& read) {
      return read.segment == pass.reads.front().segment;
    });
    CHECK((is_one || n_rows <= limits.max_rows));
    CHECK((is_one || static_cast<std::int64_t>(pass.segments.size()) <= limits.max_segments));
  }
  CHECK(next == static_cast<std::int64_t>(sequences.size()));
}

TEST_CASE("a plan reads every sequence once, over its own rows, within the limits") {
  std::mt19937 random(3);
  std::int64_t n_saved = 0;
  for (int round = 0; round < 400; ++round) {
    const auto sequences = random_sequences(random, 1 + static_cast<int>(random() % 40), 250);
    const PlanLimits limits{.max_rows = static_cast<std::int64_t>(1 + random() % 1500),
                            .max_segments = static_cast<std::int64_t>(1 + random() % 30),
                            .more_to_come = random() % 2 == 0};
    const PrefixOrder order = order_of(sequences);
    for (const CostProfile& profile : {steps(), linear_profile(1, "")}) {
      const ReusePlan plan = plan_reuse(order, profile, limits);
      check_plan(sequences, plan, limits);
      for (const std::int64_t n : order.n_rows) n_saved += n;
      for (const PlannedPass& pass : plan.passes) n_saved -= pass.n_rows;
    }
  }
  CHECK(n_saved > 0);
}

/// Rows and price of a choice of splits, in one pass, each node's split or not given by the bits.
double cost_of(const std::vector<Sequence>& sequences, const std::set<Sequence>& splits,
               const SplitPrices& prices) {
  double cost = 0;
  std::set<Sequence> used;
  for (const Sequence& sequence : sequences) {
    std::size_t above = 0;
    for (const Sequence& split : splits) {
      if (split.size() > sequence.size() ||
          !std::equal(split.begin(), split.end(), sequence.begin())) {
        continue;
      }
      if (used.insert(split).second) {
        // Its own rows, behind the nearest split above it.
        std::size_t outer = 0;
        for (const Sequence& other : splits) {
          if (other.size() < split.size() && std::equal(other.begin(), other.end(), split.begin())) {
            outer = std::max(outer, other.size());
          }
        }
        cost += prices.split_ms + prices.row_ms * static_cast<double>(split.size() - outer);
      }
      above = std::max(above, split.size());
    }
    cost += prices.row_ms * static_cast<double>(sequence.size() - above);
  }
  return cost;
}

TEST_CASE("the choice of splits is the cheapest of all") {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    auto sequences = random_sequences(random, 2 + static_cast<int>(random() % 6), 200);
    sequences.erase(std::unique(sequences.begin(), sequences.end()), sequences.end());
    std::set<Sequence> candidates;
    for (std::size_t i = 1; i < sequences.size(); ++i) {
      const std::int64_t n = common(sequences[i - 1], sequences[i]) / kSplitRows * kSplitRows;
      if (n > 0) candidates.insert(Sequence(sequences[i].begin(), sequences[i].begin() + n));
    }
    const SplitPrices prices{.row_ms = 1, .split_ms = static_cast<double>(random() % 300)};
    const std::vector<Sequence> nodes(candidates.begin(), candidates.end());
    double best = INFINITY;
    for (unsigned bits = 0; bits < 1U << nodes.size(); ++bits) {
      std::set<Sequence> splits;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (bits >> i & 1U) splits.insert(nodes[i]);
      }
      best = std::min(best, cost_of(sequences, splits, prices));
    }
    const Splits chosen = choose_splits(order_of(sequences), prices);
    std::set<Sequence> splits;
    for (std::size_t i = 1; i < sequences.size(); ++i) {
      const std::int64_t n = chosen.n_shared[i];
      CHECK(n <= common(sequences[i - 1], sequences[i]));
      if (n > 0) splits.insert(Sequence(sequences[i].begin(), sequences[i].begin() + n));
    }
    CHECK(cost_of(sequences, splits, prices) == doctest::Approx(best));
  }
}

Sequence counting(std::size_t n, int from = 0) {
  Sequence sequence(n);
  for (std::size_t i = 0; i < n; ++i) sequence[i] = from + static_cast<int>(i);
  return sequence;
}

/// One beginning of that many rows with several rests.
std::vector<Sequence> family(std::size_t n_shared, std::size_t n_own, int n) {
  std::vector<Sequence> sequences;
  for (int i = 0; i < n; ++i) {
    Sequence sequence = counting(n_shared);
    const Sequence own = counting(n_own, 10000 * (i + 1));
    sequence.insert(sequence.end(), own.begin(), own.end());
    sequences.push_back(sequence);
  }
  return sequences;
}

TEST_CASE("every fate has its reason") {
  const CostProfile profile = linear_profile(1, "");
  const auto fates = [&](const std::vector<Sequence>& sequences, const PlanLimits& limits,
                         const CostProfile& costs) {
    return plan_reuse(order_of(sequences), costs, limits).decisions;
  };
  auto decisions = fates(family(130, 20, 3), {}, profile);
  REQUIRE(decisions.size() == 1);
  CHECK(explain(decisions[0]) == "128 rows in common to 3 questions: shared, saves 256 rows");
  decisions = fates(family(63, 20, 3), {}, profile);
  REQUIRE(decisions.size() == 1);
  CHECK(decisions[0].fate == PrefixFate::kShortPrefix);
  CHECK(explain(decisions[0]) ==
        "63 rows in common to 3 questions: short prefix, under 64 rows");
  CostProfile dear = profile;
  dear.level_ms = 100;
  decisions = fates(family(64, 20, 2), {}, dear);
  REQUIRE(decisions.size() == 1);
  CHECK(explain(decisions[0]) ==
        "64 rows in common to 2 questions: short prefix, 64 rows less would not pay for a split "
        "(-52 ms)");
  decisions = fates(family(640, 100, 6), {.max_rows = 1000}, profile);
  REQUIRE(decisions.size() == 1);
  CHECK(explain(decisions[0]) ==
        "640 rows in common to 6 questions: over the batch budget, computed in 2 passes, saves "
        "2560 rows");
}

TEST_CASE("below the rows that fill an engine nothing is split") {
  const CostProfile flat{.origin = "", .points = {{512, 10}, {1024, 20}}, .segment_ms = 0.01};
  const ReusePlan plan = plan_reuse(order_of(family(128, 20, 3)), flat, {});
  REQUIRE(plan.passes.size() == 1);
  CHECK(plan.passes[0].n_rows == 3 * 148);
  CHECK(plan_reuse(order_of(family(128, 20, 30)), flat, {}).passes[0].n_rows == 128 + 30 * 20);
}

TEST_CASE("a tree that a fresh pass holds is not cut for the room that is left") {
  std::vector<Sequence> sequences = family(900, 30, 4);  // 896 + 4 * 34 = 1032
  sequences.insert(sequences.begin(), counting(300, -500));
  const ReusePlan plan =
      plan_reuse(order_of(sequences), linear_profile(1, ""), {.max_rows = 1300});
  REQUIRE(plan.passes.size() == 2);
  CHECK(plan.passes[0].reads.size() == 1);
  CHECK(plan.passes[1].n_rows == 1032);
}

TEST_CASE("equal sequences are computed once, and one may be the beginning of the next") {
  const std::vector<Sequence> sequences{counting(50), counting(50), counting(128), counting(128),
                                        counting(200)};
  const ReusePlan plan = plan_reuse(order_of(sequences), linear_profile(1, ""), {});
  check_plan(sequences, plan, {});
  REQUIRE(plan.passes.size() == 1);
  CHECK(plan.passes[0].n_rows == 50 + 200);
}

TEST_CASE("more to come: the last pass is left to be filled") {
  std::vector<Sequence> sequences;
  for (int i = 0; i < 9; ++i) sequences.push_back(counting(300, 1000 * i));
  const PlanLimits limits{.max_rows = 1024, .more_to_come = true};
  const CostProfile fixed{.origin = "", .points = {{64, 20}, {1024, 60}}};  // a pass alone costs 17
  for (const std::size_t n : {4U, 7U, 9U}) {
    const auto some = std::vector<Sequence>(sequences.begin(), sequences.begin() + n);
    const ReusePlan plan = plan_reuse(order_of(some), fixed, limits);
    REQUIRE(plan.passes.size() == (n + 2) / 3);
    for (std::size_t i = 0; i + 1 < plan.passes.size(); ++i) CHECK(plan.passes[i].n_rows == 900);
  }
}

TEST_CASE("large and hostile orders are planned in time near to linear") {
  PrefixOrder equal{std::vector<std::int64_t>(300'000, 90), std::vector<std::int64_t>(300'000, 90)};
  equal.n_common[0] = 0;
  CHECK(plan_reuse(equal, linear_profile(1, ""), {}).passes.size() == 1);
  PrefixOrder stairs;  // each begins with the whole one before, 64 rows more
  for (std::int64_t i = 1; i <= 2000; ++i) {
    stairs.n_rows.push_back(64 * i);
    stairs.n_common.push_back(64 * (i - 1));
  }
  const ReusePlan plan = plan_reuse(stairs, linear_profile(1, ""), {.max_rows = 1 << 20});
  REQUIRE(plan.passes.size() == 1);
  CHECK(plan.passes[0].n_rows == 64 * 2000);
  CHECK(plan_reuse({}, linear_profile(1, ""), {}).passes.empty());
}

TEST_CASE("costs between the points, before the first and behind the last") {
  const CostProfile profile = steps();
  CHECK(profile.rows_ms(1) == 10);
  CHECK(profile.rows_ms(64) == 10);
  CHECK(profile.rows_ms(160) == doctest::Approx(12.5));
  CHECK(profile.rows_ms(512) == 30);
  CHECK(profile.rows_ms(2048 + 1536) == doctest::Approx(230));
  CHECK(profile.pass_ms(512, 3, 2) == doctest::Approx(30 + 3 * 0.4 + 0.3));
  const CostProfile one{.origin = "", .points = {{100, 5}}};
  CHECK(one.rows_ms(20) == doctest::Approx(1));
  CHECK(one.rows_ms(400) == doctest::Approx(20));
}

}  // namespace
}  // namespace jemm

// The tree of common beginnings and the choice of its splits.
#include "plan/prefix_tree.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace jemm {
namespace {

/// A common beginning of sequences first to last. Its children are common beginnings of parts of
/// them that go on further.
struct Node {
  std::int64_t n_rows;
  std::int64_t first, last;
  std::int32_t parent = -1;
  std::int32_t level = 0;                  // ancestors
  std::int64_t n_leaves = 0;               // sequences below it and below no child
  std::int64_t n_units = 0;                // the leaves, and the splits or units of the children
  std::vector<double> children_cost = {};  // see cost
  std::vector<double> cost = {};  // of all below it, by the split above it: see best_splits
  std::vector<bool> split = {};   // likewise: whether it is one
  bool is_split = false;
  std::int64_t n_above = 0;  // rows of the nearest split above it
};

std::int64_t cut(std::int64_t n_rows) {
  return n_rows - n_rows % kSplitRows;
}

/// All nodes, each behind its parent.
std::vector<Node> find_nodes(const PrefixOrder& order) {
  std::vector<Node> nodes;
  std::vector<Node> open;
  const std::size_t n = order.n_rows.size();
  for (std::size_t i = 1; i <= n; ++i) {
    const std::int64_t n_common = i < n ? cut(order.n_common[i]) : 0;
    auto first = static_cast<std::int64_t>(i) - 1;
    while (!open.empty() && open.back().n_rows > n_common) {
      open.back().last = static_cast<std::int64_t>(i) - 1;
      first = open.back().first;
      nodes.push_back(std::move(open.back()));
      open.pop_back();
    }
    if (n_common > 0 && (open.empty() || open.back().n_rows < n_common)) {
      open.push_back({.n_rows = n_common, .first = first, .last = first});
    }
  }
  std::sort(nodes.begin(), nodes.end(), [](const Node& a, const Node& b) {
    return std::pair(a.first, a.n_rows) < std::pair(b.first, b.n_rows);
  });
  std::vector<std::int32_t> path;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    while (!path.empty() && nodes[static_cast<std::size_t>(path.back())].last < nodes[i].first) {
      path.pop_back();
    }
    if (!path.empty()) nodes[i].parent = path.back();
    nodes[i].level = static_cast<std::int32_t>(path.size());
    path.push_back(static_cast<std::int32_t>(i));
  }
  return nodes;
}

/// Calls visit(i, node) for every sequence but the first: `node` is the deepest one that holds it
/// and the sequence before, or -1.
template <typename Visit>
void visit_boundaries(const PrefixOrder& order, const std::vector<Node>& nodes, Visit visit) {
  std::vector<std::int32_t> path;
  std::size_t next = 0;
  for (std::size_t i = 1; i < order.n_rows.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    while (!path.empty() && nodes[static_cast<std::size_t>(path.back())].last < at) path.pop_back();
    for (; next < nodes.size() && nodes[next].first < at; ++next) {
      if (nodes[next].last >= at) path.push_back(static_cast<std::int32_t>(next));
    }
    visit(i, path.empty() ? -1 : path.back());
  }
}

/// A leaf is a sequence that stands directly below a node.
void count_leaves(const PrefixOrder& order, std::vector<Node>& nodes) {
  // A node's leaves and children are one more than the boundaries between them.
  std::vector<std::int64_t> n_units(nodes.size(), 1);
  visit_boundaries(order, nodes, [&](std::size_t, std::int32_t node) {
    if (node >= 0) ++n_units[static_cast<std::size_t>(node)];
  });
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].n_leaves += n_units[i];
    if (nodes[i].parent >= 0) --nodes[static_cast<std::size_t>(nodes[i].parent)].n_leaves;
  }
}

/// The cheapest choice below every node for every split that may stand above it: none (entry 0) or
/// its k-th ancestor from the top (entry k). What every choice costs alike, the rows of the whole
/// sequences and their own segments, is left out, so costs are negative: less is better.
void best_splits(std::vector<Node>& nodes, const SplitPrices& prices) {
  for (Node& node : nodes) {
    node.children_cost.assign(static_cast<std::size_t>(node.level) + 2, 0.0);
  }
  std::vector<std::int64_t> above;  // rows by entry
  for (std::size_t i = nodes.size(); i-- > 0;) {
    Node& node = nodes[i];
    const auto n_entries = static_cast<std::size_t>(node.level) + 1;
    above.assign(n_entries, 0);
    std::int32_t ancestor = node.parent;
    for (std::size_t entry = n_entries; entry-- > 1;) {
      above[entry] = nodes[static_cast<std::size_t>(ancestor)].n_rows;
      ancestor = nodes[static_cast<std::size_t>(ancestor)].parent;
    }
    const auto below = [&](std::size_t entry, std::int64_t n_above) {
      return node.children_cost[entry] -
             prices.row_ms * static_cast<double>(node.n_leaves * n_above);
    };
    for (std::size_t entry = 0; entry < n_entries; ++entry) {
      const double whole = below(entry, above[entry]);
      const double split = prices.split_ms +
                           prices.row_ms * static_cast<double>(node.n_rows - above[entry]) +
                           below(n_entries, node.n_rows);
      node.split.push_back(split < whole);
      node.cost.push_back(std::min(split, whole));
    }
    if (node.parent < 0) continue;
    Node& parent = nodes[static_cast<std::size_t>(node.parent)];
    for (std::size_t entry = 0; entry < n_entries; ++entry) {
      parent.children_cost[entry] += node.cost[entry];
    }
  }
}

/// Takes the choice from the top down.
void take_splits(std::vector<Node>& nodes) {
  std::vector<std::size_t> entry_below(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Node& node = nodes[i];
    std::size_t entry = 0;
    if (node.parent >= 0) {
      const Node& parent = nodes[static_cast<std::size_t>(node.parent)];
      entry = entry_below[static_cast<std::size_t>(node.parent)];
      node.n_above = parent.is_split ? parent.n_rows : parent.n_above;
    }
    node.is_split = node.split[entry];
    entry_below[i] = node.is_split ? static_cast<std::size_t>(node.level) + 1 : entry;
  }
  for (std::size_t i = nodes.size(); i-- > 0;) {
    nodes[i].n_units += nodes[i].n_leaves;
    if (nodes[i].parent < 0) continue;
    nodes[static_cast<std::size_t>(nodes[i].parent)].n_units +=
        nodes[i].is_split ? 1 : nodes[i].n_units;
  }
}

PrefixDecision decision_of(const Node& node, const SplitPrices& prices) {
  const std::int64_t n_own = node.n_rows - node.n_above;
  const std::int64_t rows_saved = (node.n_units - 1) * n_own;
  return {.fate = node.is_split ? PrefixFate::kShared : PrefixFate::kShortPrefix,
          .n_rows = node.n_rows,
          .n_own = n_own,
          .first = node.first,
          .last = node.last,
          .rows_saved = rows_saved,
          .gain_ms = prices.row_ms * static_cast<double>(rows_saved) - prices.split_ms};
}

/// Neighbours that begin alike, but for less than kSplitRows rows.
void add_shortest(const PrefixOrder& order, std::vector<PrefixDecision>& decisions) {
  const std::size_t n = order.n_rows.size();
  std::size_t begin = 0;
  std::int64_t n_rows = kSplitRows;
  for (std::size_t i = 1; i <= n; ++i) {
    const std::int64_t n_common = i < n ? order.n_common[i] : 0;
    if (n_common > 0) {
      n_rows = std::min(n_rows, n_common);
      continue;
    }
    if (n_rows < kSplitRows) {
      decisions.push_back({.fate = PrefixFate::kShortPrefix,
                           .n_rows = n_rows,
                           .first = static_cast<std::int64_t>(begin),
                           .last = static_cast<std::int64_t>(i) - 1});
    }
    begin = i;
    n_rows = kSplitRows;
  }
}

}  // namespace

Splits choose_splits(const PrefixOrder& order, const SplitPrices& prices) {
  std::vector<Node> nodes = find_nodes(order);
  count_leaves(order, nodes);
  best_splits(nodes, prices);
  take_splits(nodes);

  Splits splits{.n_shared = std::vector<std::int64_t>(order.n_rows.size()), .decisions = {}};
  visit_boundaries(order, nodes, [&](std::size_t i, std::int32_t index) {
    if (index < 0) return;
    const Node& node = nodes[static_cast<std::size_t>(index)];
    splits.n_shared[i] = node.is_split ? node.n_rows : node.n_above;
  });
  for (const Node& node : nodes) splits.decisions.push_back(decision_of(node, prices));
  add_shortest(order, splits.decisions);
  return splits;
}

std::string explain(const PrefixDecision& decision) {
  const std::int64_t n_sequences = decision.last - decision.first + 1;
  const std::string what =
      fmt::format("{} rows in common to {} questions", decision.n_rows, n_sequences);
  switch (decision.fate) {
    case PrefixFate::kShared:
      return fmt::format("{}: shared, saves {} rows", what, decision.rows_saved);
    case PrefixFate::kSharedInParts:
      return fmt::format("{}: over the batch budget, computed in {} passes, saves {} rows", what,
                         decision.n_passes, decision.rows_saved);
    case PrefixFate::kShortPrefix:
      break;
  }
  if (decision.n_rows < kSplitRows) {
    return fmt::format("{}: short prefix, under {} rows", what, kSplitRows);
  }
  return fmt::format("{}: short prefix, {} rows less would not pay for a split ({:+.3g} ms)", what,
                     decision.rows_saved, decision.gain_ms);
}

}  // namespace jemm

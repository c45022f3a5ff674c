// Which beginnings several sequences of rows have in common, and which of them to compute once.
// Knows lengths alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace jemm {

/// Splits stand at multiples of this from the root: the delta rule's chunks and the attention's
/// blocks are then the same with and without a split, and so are the bits.
inline constexpr std::int64_t kSplitRows = 64;

/// Sequences of rows in an order in which those with a common beginning stand together.
struct PrefixOrder {
  std::vector<std::int64_t> n_rows;    ///< of each sequence, at least 1
  std::vector<std::int64_t> n_common;  ///< rows in common with the sequence before; the first: 0
};

/// What became of a common beginning.
enum class PrefixFate {
  kShared,         ///< computed once
  kSharedInParts,  ///< the tree is over the batch budget: computed once in each of several passes
  kShortPrefix,    ///< not worth a split: under kSplitRows rows, or dearer than what it saves
};
inline constexpr int kPrefixFates = 3;

struct PrefixDecision {
  PrefixFate fate = PrefixFate::kShared;
  std::int64_t n_rows = 0;  ///< of the beginning, from the root, cut to kSplitRows
  std::int64_t n_own = 0;   ///< of them, those behind the split above it
  std::int64_t first = 0;   ///< sequences first to last of the order have it in common
  std::int64_t last = 0;
  std::int64_t n_passes = 1;    ///< in which it is computed, when shared
  std::int64_t rows_saved = 0;  ///< by sharing it; for kShortPrefix: what sharing would save
  double gain_ms = 0;           ///< what sharing saves in rows less what it costs in segments
};

/// One line: the fate and its reason in numbers.
std::string explain(const PrefixDecision& decision);

/// Prices of the choice of splits.
struct SplitPrices {
  double row_ms = 1;
  double split_ms = 0;  ///< of a segment and a level more
};

/// The cheapest set of splits.
struct Splits {
  /// Of each sequence, the rows that it need not compute when it stands behind the one before in
  /// the same pass: a multiple of kSplitRows. The first: 0.
  std::vector<std::int64_t> n_shared;
  std::vector<PrefixDecision> decisions;  ///< from the first sequence on, outer before inner
};

/// Every common beginning is cut to a multiple of kSplitRows. Those are the nodes of a tree; which
/// of them to split at is decided together, by the prices, as if all sequences fitted into one
/// pass. No two neighbours may be equal; one may be the beginning of the next.
Splits choose_splits(const PrefixOrder& order, const SplitPrices& prices);

}  // namespace jemm

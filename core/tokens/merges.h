// Byte-pair merging of one word, by rank. Knows ids only: no text, no vocabulary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tokens/keyed_hash.h"

namespace jemm {

/// The merges of a vocabulary: pair of ids -> rank and id of the joined token.
class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank = kNoMerge;  ///< lower goes first
    std::int32_t id = -1;
  };
  static constexpr std::uint32_t kNoMerge = 0xFFFFFFFF;

  /// Makes room for `n_merges`, of which insert may then be called at most so often.
  explicit MergeTable(std::size_t n_merges);

  /// A pair given twice keeps the later merge, as in the reference.
  void insert(std::int32_t left, std::int32_t right, Merge merge);

  /// The pair's merge, or one of rank kNoMerge.
  Merge find(std::int32_t left, std::int32_t right) const;

  /// Joins neighbours in `word` until none are left to join: always the pair of the lowest rank,
  /// of several the leftmost. Shortens `word`. A word of n ids takes at most n log n steps and
  /// 32 n bytes. Throws Error(kRequest, "MemoryError") for 2^31 ids or more.
  void apply(std::vector<std::int32_t>& word) const;

 private:
  struct Slot {
    std::uint64_t pair = kFree;
    Merge merge;
  };
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};
  std::size_t probe(std::uint64_t pair) const;
  void apply_short(std::vector<std::int32_t>& word) const;
  void apply_long(std::vector<std::int32_t>& word) const;

  KeyedHash hash_;
  std::vector<Slot> slots_;  // a power of two, at most half full
};

}  // namespace jemm

// Byte strings and their ids: a flat hash table over one arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokens/keyed_hash.h"

namespace jemm {

/// Grows while a vocabulary is read, then only answers.
class TokenTable {
 public:
  /// Makes room for `entries` of `bytes` in all, to spare the growing.
  void reserve(std::size_t entries, std::size_t bytes);

  /// Adds an entry; false, and no change, when `token` is there already.
  /// Requires id >= 0 and fewer than 2^31 bytes in all (the reader refuses larger files).
  bool insert(std::string_view token, std::int32_t id);

  /// Id of `token`, or -1.
  std::int32_t find(std::string_view token) const;

  /// Position of `token` in order of insertion, below size(), or -1.
  std::int32_t index_of(std::string_view token) const;

  std::size_t size() const { return entries_.size() - 1; }
  std::string_view token(std::size_t index) const {
    const std::uint32_t begin = entries_[index].begin;
    return {arena_.data() + begin, entries_[index + 1].begin - begin};
  }
  std::int32_t id(std::size_t index) const { return entries_[index].id; }

 private:
  struct Entry {
    std::uint32_t begin;  // of the token in arena_
    std::int32_t id;
  };
  struct Slot {
    std::uint32_t tag = 0;    // upper half of the hash
    std::int32_t index = -1;  // -1: free
  };
  void grow(std::size_t slots);
  std::size_t probe(std::string_view token, std::uint64_t hash) const;

  KeyedHash hash_;
  std::string arena_;
  std::vector<Entry> entries_{{0, -1}};  // in order of insertion, and one more for the end
  std::vector<Slot> slots_;              // a power of two, at most half full
};

}  // namespace jemm

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

  std::size_t size() const { return ids_.size(); }
  std::string_view token(std::size_t index) const {
    return std::string_view(arena_).substr(offsets_[index], offsets_[index + 1] - offsets_[index]);
  }
  std::int32_t id(std::size_t index) const { return ids_[index]; }

 private:
  struct Slot {
    std::uint32_t tag = 0;     // upper half of the hash
    std::int32_t index = -1;   // -1: free
  };
  void grow(std::size_t slots);
  std::size_t probe(std::string_view token, std::uint64_t hash) const;

  KeyedHash hash_;
  std::string arena_;
  std::vector<std::uint32_t> offsets_{0};  // where each token starts; one more for the end
  std::vector<std::int32_t> ids_;
  std::vector<Slot> slots_;                // a power of two, at most half full
};

}  // namespace jemm

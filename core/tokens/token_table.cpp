// Open addressing with a keyed hash.
#include "tokens/token_table.h"

#include <bit>

namespace jemm {

void TokenTable::reserve(std::size_t entries, std::size_t bytes) {
  arena_.reserve(bytes);
  entries_.reserve(entries + 1);
  grow(std::bit_ceil(2 * entries + 16));
}

// The slot that holds `token`, or the free one where it belongs. Requires slots.
std::size_t TokenTable::probe(std::string_view wanted, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  const auto tag = static_cast<std::uint32_t>(hash >> 32);
  std::size_t at = hash & mask;
  while (slots_[at].index >= 0) {
    const Slot& slot = slots_[at];
    if (slot.tag == tag && token(static_cast<std::size_t>(slot.index)) == wanted) break;
    at = (at + 1) & mask;
  }
  return at;
}

void TokenTable::grow(std::size_t n_slots) {
  if (n_slots <= slots_.size()) return;
  slots_.assign(n_slots, Slot{});
  for (std::size_t i = 0; i < size(); ++i) {
    const std::uint64_t hash = hash_(token(i));
    slots_[probe(token(i), hash)] = {static_cast<std::uint32_t>(hash >> 32),
                                     static_cast<std::int32_t>(i)};
  }
}

bool TokenTable::insert(std::string_view token, std::int32_t id) {
  if (2 * (size() + 1) > slots_.size()) grow(std::bit_ceil(4 * size() + 16));
  const std::uint64_t hash = hash_(token);
  Slot& slot = slots_[probe(token, hash)];
  if (slot.index >= 0) return false;
  slot = {static_cast<std::uint32_t>(hash >> 32), static_cast<std::int32_t>(size())};
  arena_.append(token);
  entries_.back().id = id;
  entries_.push_back({static_cast<std::uint32_t>(arena_.size()), -1});
  return true;
}

std::int32_t TokenTable::index_of(std::string_view token) const {
  return slots_.empty() ? -1 : slots_[probe(token, hash_(token))].index;
}

std::int32_t TokenTable::find(std::string_view token) const {
  const std::int32_t index = index_of(token);
  return index < 0 ? -1 : id(static_cast<std::size_t>(index));
}

}  // namespace jemm

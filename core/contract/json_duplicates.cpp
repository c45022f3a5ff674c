// Duplicate keys by sorting, so that no choice of keys can degrade it.
#include "contract/json_duplicates.h"

#include <algorithm>

namespace jemm {
namespace {

struct SortKey {
  std::uint64_t head;   // the first eight bytes, big-endian, zero-filled
  std::uint32_t index;  // of the key's node
};

std::uint64_t head_of(std::string_view key) {
  std::uint64_t head = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    head = head << 8 | (i < key.size() ? static_cast<unsigned char>(key[i]) : 0u);
  }
  return head;
}

bool is_container(const JsonNode& node) {
  return node.kind == JsonKind::kList || node.kind == JsonKind::kDict;
}

}  // namespace

void merge_duplicate_keys(std::vector<JsonNode>& nodes, std::uint32_t dict, std::string_view text) {
  if (nodes[dict].size < 2) return;
  const auto key_at = [&](std::uint32_t index) {
    return text.substr(nodes[index].place(), nodes[index].size);
  };
  std::vector<SortKey> keys;
  keys.reserve(nodes[dict].size);
  for (std::uint32_t key = dict + 1; key < nodes.size();) {
    keys.push_back({head_of(key_at(key)), key});
    key = is_container(nodes[key + 1]) ? nodes[key + 1].link() : key + 2;
  }
  std::sort(keys.begin(), keys.end(), [&](const SortKey& a, const SortKey& b) {
    if (a.head != b.head) return a.head < b.head;
    const int order = key_at(a.index).compare(key_at(b.index));
    return order != 0 ? order < 0 : a.index < b.index;
  });
  for (std::size_t first = 0; first < keys.size();) {
    std::size_t end = first + 1;
    while (end < keys.size() && keys[end].head == keys[first].head &&
           key_at(keys[end].index) == key_at(keys[first].index)) {
      nodes[keys[end++].index].kind = JsonKind::kDroppedKey;
      --nodes[dict].size;
    }
    JsonNode& kept = nodes[keys[first].index];
    kept.set(kept.place(), keys[end - 1].index + 1);
    first = end;
  }
}

}  // namespace jemm

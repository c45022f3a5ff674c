// A few values by key: the one that was not used for longest goes when there are too many.
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <utility>

namespace jemm::gpu {

template <typename Key, typename Value>
class RecentlyUsed {
 public:
  explicit RecentlyUsed(std::size_t capacity) : capacity_(capacity) {}

  /// Null where there is none. Valid until the next put or clear.
  Value* find(const Key& key) {
    const auto at = std::find_if(entries_.begin(), entries_.end(),
                                 [&](const auto& entry) { return entry.first == key; });
    if (at == entries_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, at);
    return &entries_.front().second;
  }
  /// The key is new.
  void put(Key key, Value value) {
    entries_.emplace_front(std::move(key), std::move(value));
    if (entries_.size() > capacity_) entries_.pop_back();
  }
  void clear() { entries_.clear(); }
  std::size_t size() const { return entries_.size(); }

 private:
  std::size_t capacity_;
  std::list<std::pair<Key, Value>> entries_;  // the last used first
};

}  // namespace jemm::gpu

// Merges short words by scanning, long ones by a heap.
#include "tokens/merges.h"

#include <algorithm>
#include <array>
#include <bit>
#include <queue>

#include "base/error.h"

namespace jemm {
namespace {

// Words of at most so many ids are searched from end to end for each merge; longer ones use a heap.
constexpr std::size_t kShortWord = 48;

std::uint64_t key(std::int32_t left, std::int32_t right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

}  // namespace

MergeTable::MergeTable(std::size_t n_merges) : slots_(std::bit_ceil(2 * n_merges + 2)) {}

std::size_t MergeTable::probe(std::uint64_t pair) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash_(pair) & mask;
  while (slots_[at].pair != pair && slots_[at].pair != kFree) at = (at + 1) & mask;
  return at;
}

void MergeTable::insert(std::int32_t left, std::int32_t right, Merge merge) {
  slots_[probe(key(left, right))] = {key(left, right), merge};
}

MergeTable::Merge MergeTable::find(std::int32_t left, std::int32_t right) const {
  return slots_[probe(key(left, right))].merge;  // a free slot holds no merge
}

void MergeTable::apply(std::vector<std::int32_t>& word) const {
  if (word.size() <= kShortWord) {
    apply_short(word);
  } else {
    apply_long(word);
  }
}

void MergeTable::apply_short(std::vector<std::int32_t>& word) const {
  std::array<Merge, kShortWord> merges;  // merges[i] joins word[i] and word[i + 1]
  std::size_t n = word.size();
  for (std::size_t i = 0; i + 1 < n; ++i) merges[i] = find(word[i], word[i + 1]);
  while (n > 1) {
    const auto best =
        std::min_element(merges.begin(), merges.begin() + static_cast<std::ptrdiff_t>(n - 1),
                         [](const Merge& a, const Merge& b) { return a.rank < b.rank; });
    if (best->rank == kNoMerge) break;
    const auto i = static_cast<std::size_t>(best - merges.begin());
    word[i] = best->id;
    --n;
    for (std::size_t k = i + 1; k < n; ++k) {
      word[k] = word[k + 1];
      merges[k - 1] = merges[k];
    }
    if (i > 0) merges[i - 1] = find(word[i - 1], word[i]);
    if (i + 1 < n) merges[i] = find(word[i], word[i + 1]);
  }
  word.resize(n);
}

void MergeTable::apply_long(std::vector<std::int32_t>& word) const {
  if (word.size() >= std::size_t{1} << 31) {
    throw Error::request("MemoryError", "a word of 2 GiB is too long to tokenise");
  }
  const auto n = static_cast<std::uint32_t>(word.size());
  // A list over the word: joined ids stay at the left one's place, the right one's holds -1.
  std::vector<std::uint32_t> previous(n), next(n);
  // Rank above place: the smallest is the merge to do next. An entry goes stale when a neighbour
  // is joined; it is known by the rank of the pair that now stands there.
  std::vector<std::uint64_t> heap;
  heap.reserve(n);
  const auto candidate = [&](std::uint32_t place) {
    const std::uint32_t rank = find(word[place], word[next[place]]).rank;
    return std::uint64_t{rank} << 32 | place;
  };
  for (std::uint32_t i = 0; i < n; ++i) {
    previous[i] = i - 1;
    next[i] = i + 1;
  }
  for (std::uint32_t i = 0; i + 1 < n; ++i) {
    const std::uint64_t entry = candidate(i);
    if (entry >> 32 != kNoMerge) heap.push_back(entry);
  }
  std::priority_queue queue(std::greater<std::uint64_t>{}, std::move(heap));
  while (!queue.empty()) {
    const std::uint64_t entry = queue.top();
    queue.pop();
    const auto place = static_cast<std::uint32_t>(entry);
    if (word[place] < 0 || next[place] == n) continue;
    const std::uint32_t right = next[place];
    const Merge merge = find(word[place], word[right]);
    if (merge.rank != entry >> 32) continue;
    word[place] = merge.id;
    word[right] = -1;
    next[place] = next[right];
    if (next[place] != n) {
      previous[next[place]] = place;
      if (const std::uint64_t after = candidate(place); after >> 32 != kNoMerge) queue.push(after);
    }
    if (place != 0) {
      const std::uint64_t before = candidate(previous[place]);
      if (before >> 32 != kNoMerge) queue.push(before);
    }
  }
  std::erase(word, -1);
}

}  // namespace jemm

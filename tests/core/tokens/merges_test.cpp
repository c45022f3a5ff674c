// Merging by rank: by hand, and the two ways of doing it against a plain search.
#include <doctest/doctest.h>

#include <random>

#include "core/tokens/support.h"
#include "tokens/merges.h"
#include "tokens/token_table.h"

namespace jemm::test {
namespace {

using Ids = std::vector<std::int32_t>;

Ids merged(const MergeTable& table, Ids word) {
  table.apply(word);
  return word;
}

// The definition: find the pair of the lowest rank, the leftmost of several, join it, start again.
Ids merged_plainly(const MergeTable& table, Ids word) {
  while (true) {
    std::size_t best = 0;
    MergeTable::Merge merge;
    for (std::size_t i = 0; i + 1 < word.size(); ++i) {
      const auto found = table.find(word[i], word[i + 1]);
      if (found.rank < merge.rank) {
        merge = found;
        best = i;
      }
    }
    if (merge.rank == MergeTable::kNoMerge) return word;
    word[best] = merge.id;
    word.erase(word.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

}  // namespace

TEST_CASE("the lowest rank goes first, then the leftmost") {
  MergeTable table(3);
  table.insert(0, 1, {5, 10});  // a b -> ab, later than
  table.insert(1, 2, {3, 11});  // b c -> bc
  table.insert(0, 0, {4, 12});  // a a -> aa
  CHECK(merged(table, {0, 1, 2}) == Ids{0, 11});
  CHECK(merged(table, {0, 1, 0}) == Ids{10, 0});
  CHECK(merged(table, {0, 0, 0}) == Ids{12, 0});
  CHECK(merged(table, {0, 0, 1}) == Ids{12, 1});
  CHECK(merged(table, {}).empty());
  CHECK(merged(table, {2}) == Ids{2});
}

TEST_CASE("a merge given twice has its later rank") {
  MergeTable table(3);
  table.insert(1, 2, {0, 11});
  table.insert(0, 1, {1, 10});
  table.insert(1, 2, {2, 11});
  CHECK(merged(table, {0, 1, 2}) == Ids{10, 2});
}

TEST_CASE("short and long words are merged as defined") {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    // Merges over strings of a and b, as a vocabulary has them: equal strings have equal ids.
    TokenTable names;
    names.insert("a", 0);
    names.insert("b", 1);
    MergeTable table(30);
    for (std::uint32_t rank = 0; rank < 30; ++rank) {
      const std::size_t left = random() % names.size(), right = random() % names.size();
      const std::string joined = std::string(names.token(left)).append(names.token(right));
      if (names.find(joined) < 0) names.insert(joined, static_cast<std::int32_t>(names.size()));
      table.insert(names.id(left), names.id(right), {rank, names.find(joined)});
    }
    for (const std::size_t size : {1u, 2u, 7u, 47u, 48u, 49u, 50u, 300u}) {
      Ids word(size);
      for (auto& id : word) id = static_cast<std::int32_t>(random() % 2);
      CHECK(merged(table, word) == merged_plainly(table, word));
    }
  }
}

TEST_CASE("a token table finds what was put in, and nothing else") {
  TokenTable table;
  CHECK(table.find("x") == -1);
  std::vector<std::string> tokens{""};
  std::mt19937 random(9);
  for (int i = 0; i < 3000; ++i) {
    std::string token(1 + random() % 20, 'x');
    for (char& c : token) c = static_cast<char>(random() % 256);
    if (table.find(token) < 0) {
      CHECK(table.insert(token, i));
      tokens.push_back(token);
      CHECK(table.id(table.size() - 1) == i);
    }
    CHECK_FALSE(table.insert(token, 7));
  }
  CHECK(table.size() == tokens.size() - 1);
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    REQUIRE(table.index_of(tokens[i]) == static_cast<std::int32_t>(i - 1));
    REQUIRE(table.token(i - 1) == tokens[i]);
    REQUIRE(table.find(tokens[i] + "?" + tokens[i]) == -1);
  }
}

}  // namespace jemm::test

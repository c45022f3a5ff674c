// Forests of odd shapes, and their chains, for the tests of the CUDA engine.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plan/forest.h"
#include "plan/runs.h"

namespace jemm::test {

/// Tokens without meaning below 1200, the same everywhere.
inline std::vector<std::int32_t> meaningless_tokens(std::int64_t n, std::uint32_t seed) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < n; ++i) {
    seed = seed * 1664525u + 1013904223u;
    tokens.push_back(static_cast<std::int32_t>((seed >> 16) % 1200));
  }
  return tokens;
}

struct NamedForest {
  std::string name;
  Forest forest;
};

/// {parent, rows} a segment.
inline Forest forest_of(const std::vector<std::pair<std::int32_t, std::int64_t>>& segments) {
  Forest forest;
  std::uint32_t seed = 1;
  for (const auto& [parent, n] : segments) {
    forest.add(parent, meaningless_tokens(n, seed++));
  }
  return forest;
}

/// Single roots of many lengths, a chain, and trees of three levels with empty and one-row leaves
/// and splits on and off the boundaries of chunks.
inline std::vector<NamedForest> odd_forests() {
  std::vector<NamedForest> forests;
  for (const std::int64_t n : {1, 2, 63, 64, 65, 127, 1000}) {
    forests.push_back({std::to_string(n) + " rows", forest_of({{-1, n}})});
  }
  forests.push_back({"batch", forest_of({{-1, 5}, {-1, 64}, {-1, 0}, {-1, 1}, {-1, 130}})});
  forests.push_back({"chain", forest_of({{-1, 1}, {0, 1}, {1, 1}, {2, 62}, {3, 64}, {4, 3}})});
  forests.push_back({"tree", forest_of({{-1, 64},
                                        {0, 64},
                                        {1, 1},
                                        {1, 0},
                                        {1, 70},
                                        {0, 3},
                                        {5, 200},
                                        {5, 1},
                                        {-1, 7},
                                        {8, 0},
                                        {9, 60},
                                        {9, 2}})});
  return forests;
}

}  // namespace jemm::test

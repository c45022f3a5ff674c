#include "evaluate/measure_profile.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/error.h"

namespace jemm {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::vector<std::int32_t> tokens(std::int64_t n) {
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < n; ++i) ids.push_back(static_cast<std::int32_t>(i * 7 % 32));
  return ids;
}

double time_forest(Engine& engine, const Forest& forest) {
  StageTimes times;
  engine.forward(forest, {}, times);
  const Clock::time_point start = Clock::now();
  engine.forward(forest, {}, times);
  return ms_since(start);
}

/// `n_segments` of equal length, side by side or each below the one before.
enum class Shape { kTrees, kChain };
Forest cut_forest(std::int64_t n_rows, std::int64_t n_segments, Shape shape) {
  Forest forest;
  std::int32_t last = -1;
  for (std::int64_t i = 0; i < n_segments; ++i) {
    last = forest.add(shape == Shape::kChain ? last : -1, tokens(n_rows / n_segments));
    if (shape == Shape::kTrees || i + 1 == n_segments) forest.read_last_row(last);
  }
  return forest;
}

}  // namespace

CostProfile measure_profile(Engine& engine, std::int64_t max_rows, double budget_ms) {
  const Clock::time_point start = Clock::now();
  CostProfile profile{.origin = "measured", .points = {}};
  constexpr std::int64_t kCutRows = 512, kCuts = 8;
  double last_ms = 0, whole_ms = 0;
  for (std::int64_t n_rows = 64;; n_rows = std::min(2 * n_rows, max_rows)) {
    try {
      last_ms = std::max(last_ms, time_forest(engine, cut_forest(n_rows, 1, Shape::kTrees)));
    } catch (const OutOfMemory&) {
      if (profile.points.empty()) throw;
      break;
    }
    profile.points.push_back({n_rows, last_ms});
    if (n_rows == kCutRows) whole_ms = last_ms;
    if (n_rows >= max_rows || ms_since(start) > budget_ms) break;
  }
  if (whole_ms == 0) return profile;
  const auto price = [&](Shape shape) {
    const double ms = time_forest(engine, cut_forest(kCutRows, kCuts, shape));
    return std::max(0.0, ms - whole_ms) / static_cast<double>(kCuts - 1);
  };
  profile.segment_ms = price(Shape::kTrees);
  profile.level_ms = std::max(0.0, price(Shape::kChain) - profile.segment_ms);
  return profile;
}

}  // namespace jemm

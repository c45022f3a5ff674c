#include "cpu/vision_grid.h"

#include <algorithm>
#include <cmath>

namespace jemm::cpu {

std::vector<PatchPlace> patch_places(std::int32_t n_rows, std::int32_t n_columns,
                                     std::int64_t merge) {
  const auto step = static_cast<std::int32_t>(merge);
  std::vector<PatchPlace> places;
  for (std::int32_t top = 0; top < n_rows; top += step) {
    for (std::int32_t left = 0; left < n_columns; left += step) {
      for (std::int32_t i = 0; i < step * step; ++i) {
        places.push_back({top + i / step, left + i % step, n_rows, n_columns});
      }
    }
  }
  return places;
}

AxisTaps axis_taps(std::int32_t index, std::int32_t size, std::int64_t side) {
  const float at = static_cast<float>(index) * static_cast<float>(side - 1) /
                   static_cast<float>(std::max(size - 1, 1));
  const float below = std::floor(at);
  const auto entry = static_cast<std::int64_t>(below);
  const float above = at - below;
  return {.entry = {std::min(entry, side - 1), std::min(entry + 1, side - 1)},
          .weight = {1.0f - above, 1.0f - std::abs(above - 1.0f)}};
}

void add_positions(Context& context, std::span<const float> grid, std::int64_t side,
                   std::span<const PatchPlace> places, Tiles& x) {
  const std::int64_t width = x.cols();
  context.pool.parallel_for(x.n_blocks(), [&](std::int64_t b, int) {
    for (std::int64_t lane = 0; lane < x.rows_in_block(b); ++lane) {
      const PatchPlace& place = places[static_cast<std::size_t>(b * kLanes + lane)];
      const AxisTaps rows = axis_taps(place.row, place.n_rows, side);
      const AxisTaps columns = axis_taps(place.column, place.n_columns, side);
      const float* corner[4];
      float weight[4];
      for (std::size_t i = 0; i < 4; ++i) {
        corner[i] = grid.data() + (rows.entry[i / 2] * side + columns.entry[i % 2]) * width;
        weight[i] = rows.weight[i / 2] * columns.weight[i % 2];
      }
      float* to = x.block(b) + lane;
      for (std::int64_t c = 0; c < width; ++c) {
        to[c * kLanes] += corner[0][c] * weight[0] + corner[1][c] * weight[1] +
                          corner[2][c] * weight[2] + corner[3][c] * weight[3];
      }
    }
  });
}

void make_patch_rotary(const VisionConfig& config, std::span<const PatchPlace> places,
                       RotaryTable& table) {
  const std::int64_t half = config.hidden_size / config.n_heads / 2, quarter = half / 2;
  table.cosine.reshape(static_cast<std::int64_t>(places.size()), half);
  table.sine.reshape(table.cosine.rows(), half);
  for (std::int64_t i = 0; i < half; ++i) {
    const float exponent = static_cast<float>(2 * (i % quarter)) / static_cast<float>(half);
    const float frequency =
        1.0f / static_cast<float>(std::pow(config.rope_theta, static_cast<double>(exponent)));
    for (std::int64_t patch = 0; patch < table.cosine.rows(); ++patch) {
      const PatchPlace& place = places[static_cast<std::size_t>(patch)];
      const float angle = static_cast<float>(i < quarter ? place.row : place.column) * frequency;
      table.cosine.row(patch)[i] = static_cast<float>(std::cos(static_cast<double>(angle)));
      table.sine.row(patch)[i] = static_cast<float>(std::sin(static_cast<double>(angle)));
    }
  }
}

}  // namespace jemm::cpu

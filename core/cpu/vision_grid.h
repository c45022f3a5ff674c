// Where the patches of an image stand, and what the vision tower adds and turns for it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/config.h"
#include "cpu/context.h"
#include "cpu/rotary.h"
#include "cpu/tiles.h"

namespace jemm::cpu {

/// A patch of an image of n_rows x n_columns patches.
struct PatchPlace {
  std::int32_t row = 0, column = 0;
  std::int32_t n_rows = 0, n_columns = 0;
};

/// The places of an image's patches in their order: [n_rows / merge, n_columns / merge, merge,
/// merge]. Both sides must be multiples of `merge`.
std::vector<PatchPlace> patch_places(std::int32_t n_rows, std::int32_t n_columns,
                                     std::int64_t merge);

/// The two entries of an axis of `side` learned positions that position `index` of `size` lies
/// between, and their weights. Corners are aligned: 0 falls on entry 0, size - 1 on side - 1. All
/// float32. Reference: _interpolation_axis_taps_weights (vision_utils.py), bilinear.
struct AxisTaps {
  std::array<std::int64_t, 2> entry;
  std::array<float, 2> weight;
};
AxisTaps axis_taps(std::int32_t index, std::int32_t size, std::int64_t side);

/// x[i] += the learned positions around patch i, weighted in both directions. grid: [side, side,
/// width]; x: [P, width].
void add_positions(Context& context, std::span<const float> grid, std::int64_t side,
                   std::span<const PatchPlace> places, Tiles& x);

/// Cosine and sine [P, w / 2] for rotate_head over a whole head of w = Dimg / Himg: the first half
/// of the angles turns with the row, the second with the column, theta^(-4i / w) for i < w / 4 in
/// both.
/// Angles are float32. Reference: Qwen3_5VisionRotaryEmbedding.
void make_patch_rotary(const VisionConfig& config, std::span<const PatchPlace> places,
                       RotaryTable& table);

}  // namespace jemm::cpu

// Rotary position embedding over the first dimensions of a head, three interleaved axes.
#pragma once

#include <cstdint>
#include <span>

#include "checkpoint/config.h"
#include "cpu/tiles.h"
#include "plan/forest.h"

namespace jemm::cpu {

/// Cosine and sine of every row's angles: [rows, rotary_dim / 2] each. Frequency i is
/// theta^(-2i / rotary_dim); it turns with the axis that mrope_section gives it: height for
/// i = 1, 4, 7, ..., width for i = 2, 5, 8, ... up to their counts, time for the rest. Angles are
/// float32 as in the reference (Qwen3_5TextRotaryEmbedding); their cosine and sine are then exact
/// but for the last rounding.
struct RotaryTable {
  Matrix cosine, sine;
};
void make_rotary_table(const TextConfig& config, std::span<const Position> positions,
                       RotaryTable& table);

/// Turns the pairs (x[i], x[i + half]) of a head, half = rotary_dim / 2; the rest stays.
void rotate_head(float* x, const float* cosine, const float* sine, std::int64_t half);

}  // namespace jemm::cpu

// Angles of positions, and the rotation of pairs.
#include "cpu/rotary.h"

#include <cmath>
#include <vector>

#include "engine/faults.h"

namespace jemm::cpu {
namespace {

std::size_t axis_of(const TextConfig& config, std::int64_t frequency) {
  const auto axis = static_cast<std::size_t>(frequency % 3);
  if (planted(EngineFault::kRotarySection) && axis != 0) return 3 - axis;
  return axis != 0 && frequency < 3 * config.mrope_section[axis] ? axis : 0;
}

}  // namespace

void make_rotary_table(const TextConfig& config, std::span<const Position> positions,
                       RotaryTable& table) {
  const std::int64_t half = config.rotary_dim / 2;
  std::vector<float> frequency(static_cast<std::size_t>(half));
  for (std::int64_t i = 0; i < half; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(config.rotary_dim);
    frequency[static_cast<std::size_t>(i)] =
        1.0f / static_cast<float>(std::pow(config.rope_theta, static_cast<double>(exponent)));
  }
  const auto n_rows = static_cast<std::int64_t>(positions.size());
  table.cosine.reshape(n_rows, half);
  table.sine.reshape(n_rows, half);
  for (std::int64_t row = 0; row < n_rows; ++row) {
    for (std::int64_t i = 0; i < half; ++i) {
      const std::int32_t p = positions[static_cast<std::size_t>(row)][axis_of(config, i)];
      const float angle = static_cast<float>(p) * frequency[static_cast<std::size_t>(i)];
      table.cosine.row(row)[i] = static_cast<float>(std::cos(static_cast<double>(angle)));
      table.sine.row(row)[i] = static_cast<float>(std::sin(static_cast<double>(angle)));
    }
  }
}

void rotate_head(float* x, const float* cosine, const float* sine, std::int64_t half) {
  for (std::int64_t i = 0; i < half; ++i) {
    const float a = x[i], b = x[half + i];
    x[i] = a * cosine[i] - b * sine[i];
    x[half + i] = b * cosine[i] + a * sine[i];
  }
}

}  // namespace jemm::cpu

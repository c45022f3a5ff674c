// Bicubic resizing of 8-bit RGB.
#pragma once

#include <cstdint>
#include <vector>

#include "image/rgb.h"

namespace jemm {

/// The filter of one axis: output i is the sum over j < n_taps[i] of
/// taps[i * stride + j] * input[first[i] + j], divided by 2^precision.
struct ResizeAxis {
  std::size_t stride =
      0;  ///< even; the taps behind n_taps[i] are 0, at least one when n_taps[i] is odd
  std::vector<std::size_t> first;   // [out]
  std::vector<std::size_t> n_taps;  // [out]
  std::vector<std::int16_t> taps;   // [out, stride]
  int precision = 0;
};

/// Antialiased cubic (a = -0.5) weights from `in` to `out` samples, as fixed-point numbers of the
/// largest precision that 16 bits allow. Both sizes are at least 1.
ResizeAxis resize_axis(std::size_t in, std::size_t out);

/// torchvision's antialiased bicubic resize of a uint8 tensor on a CPU, bit for bit: rows first,
/// then columns, rounded and clamped to 8 bits in between; an axis that keeps its size is left
/// alone. Sums are 32-bit integers, so the result depends on no vector unit.
Rgb resize_bicubic(Rgb image, std::int32_t width, std::int32_t height);

}  // namespace jemm

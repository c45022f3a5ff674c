// Fixed-point weights, and the order of the two passes.
#include "image/resize.h"

#include <algorithm>
#include <cmath>

#include "image/resize_rows.h"

namespace jemm {
namespace {

constexpr double kCubicReach = 2;

double cubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

/// The smallest precision at which the largest weight's next bit would leave 16 bits.
int axis_precision(double largest) {
  for (int p = 0; p < 22; ++p) {
    if (static_cast<int>(0.5 + largest * static_cast<double>(1 << (p + 1))) >= 1 << 15) return p;
  }
  return 22;
}

}  // namespace

ResizeAxis resize_axis(std::size_t in, std::size_t out) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double support = kCubicReach * std::max(scale, 1.0);
  const double inverse = scale >= 1 ? 1 / scale : 1;
  ResizeAxis axis;
  const std::size_t max_taps = 2 * static_cast<std::size_t>(std::ceil(support)) + 1;
  axis.stride = max_taps + 1;
  std::vector<double> weights(out * axis.stride);
  double largest = 0;
  for (std::size_t i = 0; i < out; ++i) {
    const double centre = scale * (static_cast<double>(i) + 0.5);
    const auto low = static_cast<std::size_t>(std::max(std::trunc(centre - support + 0.5), 0.0));
    const auto high = std::min(static_cast<std::size_t>(centre + support + 0.5), in);
    const std::size_t n = std::min(high - low, max_taps);
    double* row = weights.data() + i * axis.stride;
    double total = 0;
    for (std::size_t j = 0; j < n; ++j) {
      row[j] = cubic((static_cast<double>(j + low) - centre + 0.5) * inverse);
      total += row[j];
    }
    for (std::size_t j = 0; j < n; ++j) {
      row[j] /= total;
      largest = std::max(largest, row[j]);
    }
    axis.first.push_back(low);
    axis.n_taps.push_back(n);
  }
  axis.precision = axis_precision(largest);
  const auto one = static_cast<double>(1 << axis.precision);
  for (const double weight : weights) {
    axis.taps.push_back(static_cast<std::int16_t>(weight * one + (weight < 0 ? -0.5 : 0.5)));
  }
  return axis;
}

Rgb resize_bicubic(Rgb image, std::int32_t width, std::int32_t height) {
  const auto row_bytes = static_cast<std::size_t>(width) * 3;
  if (width != image.width) {
    const auto in_bytes = static_cast<std::size_t>(image.width) * 3;
    const ResizeAxis axis =
        resize_axis(static_cast<std::size_t>(image.width), static_cast<std::size_t>(width));
    Rgb wide{width, image.height,
             std::vector<std::uint8_t>(row_bytes * static_cast<std::size_t>(image.height))};
    for (std::size_t y = 0; y < static_cast<std::size_t>(image.height); ++y) {
      resize_row(axis, image.pixels.data() + y * in_bytes, wide.pixels.data() + y * row_bytes);
    }
    image = std::move(wide);
  }
  if (height != image.height) {
    const ResizeAxis axis =
        resize_axis(static_cast<std::size_t>(image.height), static_cast<std::size_t>(height));
    Rgb tall{width, height,
             std::vector<std::uint8_t>(row_bytes * static_cast<std::size_t>(height))};
    for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y) {
      resize_column(axis, y, image.pixels.data(), row_bytes, tall.pixels.data() + y * row_bytes);
    }
    image = std::move(tall);
  }
  return image;
}

}  // namespace jemm

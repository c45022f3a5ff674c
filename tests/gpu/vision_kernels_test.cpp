// Each kernel of the vision tower against a naive twin in double, over odd shapes.
#include "gpu/kernels/vision_kernels.h"

#include <tuple>

#include "gpu/support.h"

namespace jemm {
namespace {

using gpu::ImageTile;
using gpu::PatchPlace;
using gpu::Turn;
using test::bf16;
using test::OnDevice;
using test::rounded;
using test::Stored;
using test::uniform;

TEST_CASE_TEMPLATE("both forms of GELU", T, float, bf16) {
  if (!test::has_device()) return;
  const gpu::Stream stream;
  for (const std::int64_t n : {0, 1, 7, 8, 63, 64, 65, 1000, 8193}) {
    CAPTURE(n);
    std::vector<float> x = rounded<T>(uniform(n, 2, -8, 8));
    if (n > 8) {
      x[0] = 0, x[1] = -0.0f, x[2] = 30, x[3] = -30, x[4] = rounded<T>(1e4f), x[5] = -x[4];
    }
    std::vector<double> by_tanh, by_erf;
    for (const float value : x) {
      const auto v = static_cast<double>(value);
      const double inner = std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v);
      by_tanh.push_back(0.5 * v * (1 + std::tanh(inner)));
      by_erf.push_back(0.5 * v * (1 + std::erf(v / std::sqrt(2.0))));
    }
    OnDevice<T> a(x, stream), b(x, stream);
    gpu::gelu_tanh(a.data(), n, stream.get());
    gpu::gelu_erf(b.data(), n, stream.get());
    // 1 + tanh keeps 6e-8 of absolute error, times up to 4 where it nearly vanishes.
    CHECK(test::worst_share(a.values(), by_tanh, 1e-6, 1e-6 + Stored<T>::kHalfStep) <= 1);
    CHECK(test::worst_share(b.values(), by_erf, 1e-6, 1e-6 + Stored<T>::kHalfStep) <= 1);
  }
}

template <typename T>
void check_layer_norm(std::int64_t n_rows, std::int64_t width, bool has_update,
                      const gpu::Stream& stream) {
  CAPTURE(n_rows);
  CAPTURE(width);
  CAPTURE(has_update);
  std::vector<float> x = rounded<T>(uniform(n_rows * width, 3, 2, 4));  // the mean is most of it
  const std::vector<float> update = rounded<T>(uniform(n_rows * width, 4, -2, 2));
  const std::vector<float> weight = rounded<T>(uniform(width, 5, 0.5, 1.5));
  const std::vector<float> bias = rounded<T>(uniform(width, 6, -1, 1));
  OnDevice<T> device_x(x, stream), device_update(update, stream), device_weight(weight, stream);
  OnDevice<T> device_bias(bias, stream), device_y(n_rows * width, stream);
  gpu::layer_norm(gpu::LayerNorm<T>{.x = device_x.data(),
                                    .update = has_update ? device_update.data() : nullptr,
                                    .weight = device_weight.data(),
                                    .bias = device_bias.data(),
                                    .eps = 1e-6f,
                                    .y = device_y.data()},
                  n_rows, width, stream.get());
  if (has_update) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = rounded<T>(x[i] + update[i]);
  }
  CHECK(test::same_bits(device_x.values(), x));

  std::vector<double> want;
  for (std::int64_t r = 0; r < n_rows; ++r) {
    const float* row = x.data() + r * width;
    double mean = 0, variance = 0;
    for (std::int64_t c = 0; c < width; ++c) mean += static_cast<double>(row[c]);
    mean /= static_cast<double>(width);
    for (std::int64_t c = 0; c < width; ++c) {
      variance += std::pow(static_cast<double>(row[c]) - mean, 2);
    }
    variance /= static_cast<double>(width);
    for (std::int64_t c = 0; c < width; ++c) {
      const auto i = static_cast<std::size_t>(c);
      want.push_back((static_cast<double>(row[c]) - mean) / std::sqrt(variance + 1e-6) *
                         static_cast<double>(weight[i]) +
                     static_cast<double>(bias[i]));
    }
  }
  CHECK(test::worst_share(device_y.values(), want, 1e-5, 1e-6 + Stored<T>::kHalfStep) <= 1);
}

TEST_CASE_TEMPLATE("layer norm, with and without the sum before it", T, float, bf16) {
  if (!test::has_device()) return;
  const gpu::Stream stream;
  for (const std::int64_t n_rows : {1, 63, 64, 65, 127, 1000}) {
    for (const std::int64_t width : {24, 80, 97, 1152}) {
      check_layer_norm<T>(n_rows, width, n_rows % 2 == 0, stream);
    }
  }
  check_layer_norm<T>(8192, 144, true, stream);
  check_layer_norm<T>(3, gpu::kMaxNormWidth, true, stream);
  check_layer_norm<T>(5, 4000, false, stream);
}

// The learned position of a patch: both coordinates stretched so that the corners of image and grid
// coincide, then bilinear.
double position(const std::vector<float>& grid, std::int64_t side, std::int64_t width,
                const PatchPlace& place, std::int64_t channel) {
  const auto stretched = [&](std::int32_t i, std::int32_t n) {
    return n == 1 ? 0.0
                  : static_cast<double>(i) * static_cast<double>(side - 1) /
                        static_cast<double>(n - 1);
  };
  const double y = stretched(place.row, place.n_rows), x = stretched(place.column, place.n_columns);
  double sum = 0;
  for (std::int64_t r = 0; r < side; ++r) {
    for (std::int64_t c = 0; c < side; ++c) {
      const double weight = std::max(0.0, 1 - std::abs(y - static_cast<double>(r))) *
                            std::max(0.0, 1 - std::abs(x - static_cast<double>(c)));
      const auto at = static_cast<std::size_t>((r * side + c) * width + channel);
      if (weight > 0) sum += weight * static_cast<double>(grid[at]);
    }
  }
  return sum;
}

std::vector<PatchPlace> all_places(std::int32_t n_rows, std::int32_t n_columns) {
  std::vector<PatchPlace> places;
  for (std::int32_t r = 0; r < n_rows; ++r) {
    for (std::int32_t c = 0; c < n_columns; ++c) places.push_back({r, c, n_rows, n_columns});
  }
  return places;
}

TEST_CASE_TEMPLATE("learned positions are resampled corner to corner", T, float, bf16) {
  if (!test::has_device()) return;
  const gpu::Stream stream;
  constexpr std::int64_t kSide = 48, kWidth = 5;
  const std::vector<float> grid = rounded<T>(uniform(kSide * kSide * kWidth, 7, -1, 1));
  OnDevice<T> device_grid(grid, stream);
  for (const auto& [rows, columns] : std::vector<std::pair<std::int32_t, std::int32_t>>{
           {1, 1}, {2, 2}, {4, 6}, {2, 50}, {48, 48}, {47, 49}}) {
    CAPTURE(rows);
    CAPTURE(columns);
    const std::vector<PatchPlace> places = all_places(rows, columns);
    const auto n = static_cast<std::int64_t>(places.size());
    const std::vector<float> x = rounded<T>(uniform(n * kWidth, 8, -0.5, 0.5));
    OnDevice<T> device_x(x, stream);
    const auto device_places = test::on_device(places, stream);
    gpu::add_positions(device_grid.data(), kSide, device_places.data(), device_x.data(), n, kWidth,
                       stream.get());
    std::vector<double> want;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto patch = static_cast<std::int64_t>(i) / kWidth;
      const auto channel = static_cast<std::int64_t>(i) % kWidth;
      want.push_back(static_cast<double>(x[i]) + position(grid, kSide, kWidth,
                                                          places[static_cast<std::size_t>(patch)],
                                                          channel));
    }
    const std::vector<float> got = device_x.values();
    // A coordinate of up to 47 has 4e-6 of rounding; a position of up to 1 is rounded on its own.
    CHECK(test::worst_share(got, want, 2e-5 + Stored<T>::kHalfStep, Stored<T>::kHalfStep) <= 1);
    const std::size_t last = got.size() - kWidth;
    for (std::size_t c = 0; c < kWidth; ++c) {
      CHECK(got[c] == rounded<T>(x[c] + grid[c]));
      if (rows > 1) {
        CHECK(got[last + c] == rounded<T>(x[last + c] + grid[grid.size() - kWidth + c]));
      }
    }
  }
}

TEST_CASE_TEMPLATE("rows turn the first half of the angles, columns the second", T, float, bf16) {
  if (!test::has_device()) return;
  const gpu::Stream stream;
  for (const auto& [n_rows, n_columns, n_heads, head_dim] :
       std::vector<std::tuple<int, int, std::int64_t, std::int64_t>>{
           {1, 1, 1, 4}, {2, 4, 2, 12}, {7, 9, 4, 20}, {9, 15, 3, 72}, {5, 26, 2, 128}}) {
    CAPTURE(head_dim);
    const std::vector<PatchPlace> places = all_places(n_rows, n_columns);
    const auto n = static_cast<std::int64_t>(places.size());
    const std::int64_t half = head_dim / 2, quarter = half / 2;
    std::vector<Turn> turns;
    const std::vector<float> angles = uniform(32 * quarter, 9, -4, 4);
    for (const float angle : angles) turns.push_back({std::cos(angle), std::sin(angle)});
    const std::vector<float> x = rounded<T>(uniform(n * 3 * n_heads * head_dim, 10, -2, 2));
    OnDevice<T> device_x(x, stream);
    const auto device_places = test::on_device(places, stream);
    const auto device_turns = test::on_device(turns, stream);
    gpu::rotate_patches(device_places.data(), device_turns.data(), device_x.data(), n, n_heads,
                        head_dim, stream.get());
    std::vector<double> want(x.begin(), x.end());
    for (std::int64_t patch = 0; patch < n; ++patch) {
      const PatchPlace& place = places[static_cast<std::size_t>(patch)];
      for (std::int64_t head = 0; head < 2 * n_heads; ++head) {
        double* at = want.data() + (patch * 3 * n_heads + head) * head_dim;
        for (std::int64_t i = 0; i < half; ++i) {
          const std::int64_t coordinate = i < quarter ? place.row : place.column;
          const Turn& turn = turns[static_cast<std::size_t>(coordinate * quarter + i % quarter)];
          const double a = at[i], b = at[half + i];
          at[i] = a * static_cast<double>(turn.cosine) - b * static_cast<double>(turn.sine);
          at[half + i] = b * static_cast<double>(turn.cosine) + a * static_cast<double>(turn.sine);
        }
      }
    }
    CHECK(test::worst_share(device_x.values(), want, 1e-6, 1e-6 + Stored<T>::kHalfStep) <= 1);
  }
}

struct AttentionCase {
  std::vector<std::int64_t> lengths;  // of the images
  std::int64_t n_heads = 0, head_dim = 0;
  float size = 2;    // of queries and keys
  double slack = 1;  // how much more float32 may miss by
};

template <typename T>
std::vector<float> attend(const std::vector<float>& qkv, const AttentionCase& c,
                          const gpu::Stream& stream) {
  std::vector<ImageTile> tiles;
  std::int32_t begin = 0;
  for (const std::int64_t length : c.lengths) {
    const auto n = static_cast<std::int32_t>(length);
    for (std::int32_t q = 0; q < n; q += gpu::kImageQueries) tiles.push_back({begin, n, q});
    begin += n;
  }
  OnDevice<T> device_qkv(qkv, stream);
  OnDevice<T> attended(static_cast<std::int64_t>(qkv.size() / 3), stream);
  const auto device_tiles = test::on_device(tiles, stream);
  gpu::attend_images(gpu::ImageAttention<T>{.qkv = device_qkv.data(),
                                            .tiles = device_tiles.data(),
                                            .n_tiles = static_cast<std::int64_t>(tiles.size()),
                                            .n_heads = c.n_heads,
                                            .head_dim = c.head_dim,
                                            .attended = attended.data()},
                     stream.get());
  return attended.values();
}

// One query's attention over the keys of rows [begin, begin + n).
std::vector<double> attend_naively(const std::vector<float>& qkv, const AttentionCase& c,
                                   std::int64_t begin, std::int64_t n, std::int64_t query,
                                   std::int64_t head) {
  const std::int64_t width = c.n_heads * c.head_dim;
  const auto at = [&](std::int64_t row, std::int64_t part) {
    return qkv.data() + row * 3 * width + part * width + head * c.head_dim;
  };
  std::vector<double> weights;
  double largest = -HUGE_VAL, sum = 0;
  for (std::int64_t key = begin; key < begin + n; ++key) {
    double score = 0;
    for (std::int64_t d = 0; d < c.head_dim; ++d) {
      score += static_cast<double>(at(query, 0)[d]) * static_cast<double>(at(key, 1)[d]);
    }
    weights.push_back(score / std::sqrt(static_cast<double>(c.head_dim)));
    largest = std::max(largest, weights.back());
  }
  std::vector<double> result(static_cast<std::size_t>(c.head_dim));
  for (std::int64_t i = 0; i < n; ++i) {
    const double weight = std::exp(weights[static_cast<std::size_t>(i)] - largest);
    sum += weight;
    for (std::int64_t d = 0; d < c.head_dim; ++d) {
      result[static_cast<std::size_t>(d)] += weight * static_cast<double>(at(begin + i, 2)[d]);
    }
  }
  for (double& x : result) x /= sum;
  return result;
}

template <typename T>
std::vector<float> random_qkv(const AttentionCase& c, std::int64_t n_rows) {
  const std::int64_t width = c.n_heads * c.head_dim;
  std::vector<float> qkv = uniform(n_rows * 3 * width, 11, -1, 1);
  for (std::size_t i = 0; i < qkv.size(); ++i) {
    if (static_cast<std::int64_t>(i) % (3 * width) < 2 * width) qkv[i] *= c.size;
  }
  return rounded<T>(qkv);
}

// Every row of short images, some of the others.
template <typename T>
void check_attention(const AttentionCase& c, const gpu::Stream& stream) {
  std::int64_t n_rows = 0;
  for (const std::int64_t length : c.lengths) n_rows += length;
  CAPTURE(n_rows);
  CAPTURE(c.head_dim);
  const std::vector<float> qkv = random_qkv<T>(c, n_rows);
  const std::vector<float> all = attend<T>(qkv, c, stream);
  std::vector<double> want;
  std::vector<float> got;
  std::int64_t begin = 0;
  for (const std::int64_t length : c.lengths) {
    const std::int64_t step = std::max<std::int64_t>(1, length / 37);
    for (std::int64_t i = 0; i < length; i += step) {
      for (std::int64_t head = 0; head < c.n_heads; ++head) {
        const std::int64_t query = begin + (i + step > length - 1 ? length - 1 : i);
        const std::vector<double> row = attend_naively(qkv, c, begin, length, query, head);
        want.insert(want.end(), row.begin(), row.end());
        const float* from = all.data() + (query * c.n_heads + head) * c.head_dim;
        got.insert(got.end(), from, from + c.head_dim);
      }
    }
    begin += length;
  }
  for (const float x : all) REQUIRE(std::isfinite(x));
  // BF16: weights and results are rounded, 2^-9 each at the worst.
  const bool is_float = std::is_same_v<T, float>;
  CHECK(test::rms_ratio(got, want) <= (is_float ? 2e-6 * c.slack : 3e-3));
  CHECK(test::worst_share(got, want, is_float ? 5e-6 * c.slack : 4e-3, is_float ? 0 : 4e-3) <= 1);
}

TEST_CASE_TEMPLATE("attention over the patches of each image", T, float, bf16) {
  if (!test::has_device()) return;
  const gpu::Stream stream;
  for (const std::int64_t head_dim : {4, 12, 20, 32, 40, 72, 74, 80, 126, 128}) {
    check_attention<T>({.lengths = {65, 1, 4, 127}, .n_heads = 3, .head_dim = head_dim}, stream);
  }
  for (const std::int64_t length :
       {1, 2, 31, 32, 33, 63, 64, 65, 95, 96, 97, 127, 128, 129, 191, 192, 193, 1000}) {
    check_attention<T>({.lengths = {length}, .n_heads = 2, .head_dim = 72}, stream);
  }
  check_attention<T>({.lengths = {24, 100, 8192}, .n_heads = 2, .head_dim = 72}, stream);
  // Scores of hundreds, with 1e-4 of rounding: the softmax mostly picks one key.
  check_attention<T>({.lengths = {200, 300}, .n_heads = 2, .head_dim = 72, .size = 20, .slack = 50},
                     stream);
}

TEST_CASE_TEMPLATE("an image's attention does not see its neighbours", T, float, bf16) {
  if (!test::has_device()) return;
  const gpu::Stream stream;
  const AttentionCase both{.lengths = {70, 333}, .n_heads = 4, .head_dim = 72};
  const AttentionCase alone{.lengths = {333}, .n_heads = 4, .head_dim = 72};
  const std::vector<float> qkv = random_qkv<T>(both, 403);
  const std::vector<float> second(qkv.begin() + 70 * 3 * 288, qkv.end());
  const std::vector<float> together = attend<T>(qkv, both, stream);
  CHECK(test::same_bits(std::vector<float>(together.begin() + 70 * 288, together.end()),
                        attend<T>(second, alone, stream)));
  CHECK(test::same_bits(together, attend<T>(qkv, both, stream)));
}

}  // namespace
}  // namespace jemm

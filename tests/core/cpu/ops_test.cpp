// The operations of the CPU engine, each against hand work or a plain computation in double.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include "core/cpu/support.h"
#include "cpu/attention.h"
#include "cpu/conv.h"
#include "cpu/elementwise.h"
#include "cpu/linear.h"
#include "cpu/norms.h"
#include "cpu/rotary.h"
#include "cpu/vector_math.h"

namespace jemm::cpu {
namespace {

std::vector<float> noise(std::int64_t n, std::uint32_t seed, float size = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-size, size);
  std::vector<float> v(static_cast<std::size_t>(n));
  for (float& x : v) x = uniform(random);
  return v;
}

void fill(Matrix& m, std::int64_t rows, std::int64_t cols, const std::vector<float>& values) {
  m.reshape(rows, cols);
  std::copy_n(values.data(), rows * cols, m.row(0));
}

std::vector<Run> runs_of_chain(std::initializer_list<std::int64_t> lengths) {
  Forest forest;
  std::int32_t segment = -1;
  for (const std::int64_t n : lengths) segment = forest.add(segment, test::some_tokens(n, 1));
  return runs_of(forest);
}

TEST_CASE("every task runs once, errors come out, the pool goes on") {
  ThreadPool pool(3);
  for (const std::int64_t n : {0, 1, 2, 100}) {
    std::vector<std::atomic<int>> seen(100);
    pool.parallel_for(n, [&](std::int64_t task, int worker) {
      CHECK(worker < 3);
      ++seen[static_cast<std::size_t>(task)];
    });
    for (std::size_t i = 0; i < seen.size(); ++i)
      CHECK(seen[i] == (i < static_cast<std::size_t>(n)));
    CHECK_THROWS_AS(
        pool.parallel_for(n + 1, [](std::int64_t, int) { throw std::runtime_error("task"); }),
        std::runtime_error);
  }
}

TEST_CASE("exp is exact to two units in the last place over its range") {
  double worst = 0;
  for (double x = -87; x < 88.7; x += 0.00137) {
    const auto f = static_cast<float>(x);
    const double exact = std::exp(static_cast<double>(f));
    worst = std::max(worst, std::abs(static_cast<double>(vector_exp(f)) - exact) / exact);
  }
  CHECK(worst < 2 * 1.2e-7);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  CHECK(vector_exp(0.0f) == 1.0f);
  CHECK(vector_exp(-0.0f) == 1.0f);
  CHECK(vector_exp(-kInfinity) == 0.0f);
  CHECK(vector_exp(-104.0f) == 0.0f);
  CHECK(vector_exp(kInfinity) == kInfinity);
  CHECK(vector_exp(89.0f) == kInfinity);
  CHECK(std::isnan(vector_exp(std::numeric_limits<float>::quiet_NaN())));
  CHECK(vector_silu(0.0f) == 0.0f);
  CHECK(vector_silu(30.0f) == 30.0f);
  CHECK(vector_sigmoid(0.0f) == 0.5f);
}

TEST_CASE("BF16 is widened to what it stands for") {
  std::vector<std::uint16_t> all(65536);
  std::iota(all.begin(), all.end(), std::uint16_t{0});
  std::vector<float> wide(all.size());
  widen_bf16(all.data(), wide.data(), static_cast<std::int64_t>(all.size()));
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(std::bit_cast<std::uint32_t>(wide[i]) == static_cast<std::uint32_t>(i) << 16);
  }
}

TEST_CASE("tiles hold the rows they were made from, and zeros behind them") {
  ThreadPool pool(1);
  for (const std::int64_t rows : {1, 63, 64, 65, 200}) {
    for (const std::int64_t cols : {1, 17, 300}) {
      const std::vector<float> values = noise(rows * cols, 1);
      Matrix m, back;
      Tiles tiles, picked;
      fill(m, rows, cols, values);
      to_tiles(pool, m, tiles);
      CHECK(tiles.at(rows - 1, cols - 1) == values.back());
      if (rows % 64 != 0) CHECK(tiles.block(tiles.n_blocks() - 1)[63] == 0.0f);
      to_matrix(pool, tiles, back);
      CHECK(std::equal(values.begin(), values.end(), back.row(0)));
      const std::vector<std::int64_t> order{rows - 1, 0, rows / 2, 0};
      gather_rows(tiles, order, picked);
      for (std::size_t i = 0; i < order.size(); ++i) {
        CHECK(picked.at(static_cast<std::int64_t>(i), cols - 1) == m.row(order[i])[cols - 1]);
      }
    }
  }
}

TEST_CASE("the norm by hand, with the factor that an offset of 0 and of 0.5 gives") {
  Context context(1);
  Matrix m;
  Tiles x, y;
  fill(m, 2, 2, {3, 4, 0, 0});
  to_tiles(context.pool, m, x);
  const double rms = std::sqrt(12.5);
  for (const float offset : {0.0f, 0.5f}) {
    const std::vector<float> factor(2, 1 + offset);
    rms_norm(context, x, factor, 1e-6f, y);
    CHECK(static_cast<double>(y.at(0, 0)) ==
          doctest::Approx(3 / rms * (1 + static_cast<double>(offset))));
    CHECK(static_cast<double>(y.at(0, 1)) ==
          doctest::Approx(4 / rms * (1 + static_cast<double>(offset))));
    CHECK(y.at(1, 0) == 0.0f);
  }
  rms_norm(context, x, std::vector<float>{1, 1}, 3.5f, y);  // eps is inside the root: 12.5 + 3.5
  CHECK(y.at(0, 0) == 0.75f);

  float head[2] = {3, 4};
  rms_norm_head(head, std::vector<float>{1, 2}, 3.5f);
  CHECK(head[0] == 0.75f);
  CHECK(head[1] == 2.0f);
}

TEST_CASE("a long row's norm agrees with double") {
  Context context(1);
  const std::int64_t n = 5120;
  Matrix m;
  Tiles x, y;
  const std::vector<float> values = noise(n, 3);
  fill(m, 1, n, values);
  to_tiles(context.pool, m, x);
  rms_norm(context, x, std::vector<float>(static_cast<std::size_t>(n), 1.0f), 1e-6f, y);
  double sum = 0;
  for (const float v : values) sum += static_cast<double>(v) * static_cast<double>(v);
  const double expected = static_cast<double>(values[7]) / std::sqrt(sum / n + 1e-6);
  CHECK(std::abs(static_cast<double>(y.at(0, 7)) / expected - 1) < 5e-7);
}

TEST_CASE("the gated norm: norm, times weight as stored, times silu of the gate") {
  const float x[2] = {3, 4}, gate[2] = {0, 2};
  float y[2];
  gated_rms_norm_head(x, gate, std::vector<float>{5, 0.5f}, 3.5f, y);
  CHECK(y[0] == 0.0f);
  CHECK(static_cast<double>(y[1]) ==
        doctest::Approx(1.0 * 0.5 * 2 / (1 + std::exp(-2.0))).epsilon(1e-6));
}

TEST_CASE("the unit norm sums squares, eps added to the sum") {
  float x[2] = {3e-3f, 4e-3f};  // sum of squares 25e-6, with eps 26e-6
  unit_norm_head(x, 2, 10);
  CHECK(static_cast<double>(x[0]) == doctest::Approx(3e-3 / std::sqrt(26e-6) * 10).epsilon(1e-6));
}

TEST_CASE("rotary angles follow the three axes, interleaved") {
  TextConfig config;
  config.rotary_dim = 16;
  config.rope_theta = 1e4;
  config.mrope_section = {3, 3, 2};
  RotaryTable table;
  const std::vector<Position> positions{{0, 0, 0}, {5, 7, 11}};
  make_rotary_table(config, positions, table);
  const int axis_position[8] = {5, 7, 11, 5, 7, 11, 5, 7};
  for (int i = 0; i < 8; ++i) {
    const double angle = axis_position[i] * std::pow(1e4, -2.0 * i / 16);
    CHECK(table.cosine.row(0)[i] == 1.0f);
    CHECK(static_cast<double>(table.cosine.row(1)[i]) ==
          doctest::Approx(std::cos(angle)).epsilon(1e-5));
    CHECK(static_cast<double>(table.sine.row(1)[i]) ==
          doctest::Approx(std::sin(angle)).epsilon(1e-5));
  }
  config.mrope_section = {6, 1, 1};  // behind their counts all frequencies turn with time
  make_rotary_table(config, positions, table);
  CHECK(static_cast<double>(table.cosine.row(1)[4]) ==
        doctest::Approx(std::cos(5 * std::pow(1e4, -0.5))).epsilon(1e-5));

  float x[5] = {1, 2, 3, 4, 9};
  const float cosine[2] = {0, 0.6f}, sine[2] = {1, 0.8f};
  rotate_head(x, cosine, sine, 2);  // pairs (1, 3) by 90 degrees and (2, 4)
  CHECK(x[0] == -3.0f);
  CHECK(x[2] == 1.0f);
  CHECK(x[1] == doctest::Approx(2 * 0.6 - 4 * 0.8));
  CHECK(x[3] == doctest::Approx(4 * 0.6 + 2 * 0.8));
  CHECK(x[4] == 9.0f);
}

TEST_CASE("the convolution sees its chain and nothing else") {
  Context context(1);
  Forest forest;
  const auto root = forest.add(-1, test::some_tokens(2, 1));
  const auto middle = forest.add(root, test::some_tokens(1, 1));
  forest.add(root, test::some_tokens(1, 1));
  forest.add(middle, test::some_tokens(2, 1));
  forest.add(-1, test::some_tokens(1, 1));
  Matrix x, y;
  fill(x, 7, 1, {1, 2, 4, 8, 16, 32, 64});
  const std::vector<float> taps{1000, 100, 10, 1};  // oldest first
  causal_conv(context, x, taps, runs_of(forest), y);
  const double expected[7] = {1, 12, 124, 128, 1256, 2592, 64};
  // Row 4 follows rows 2, 1, 0; row 5 follows 4, 2, 1; row 3 follows 1, 0.
  for (std::int64_t i = 0; i < 7; ++i) {
    const double sum = expected[i];
    CHECK(static_cast<double>(y.row(i)[0]) ==
          doctest::Approx(sum / (1 + std::exp(-sum))).epsilon(1e-6));
  }
}

Linear some_linear(std::int64_t out, std::int64_t in, DType dtype, bool with_lora) {
  const auto tensor = [](Shape shape, DType type, std::uint32_t seed) {
    const auto bytes = std::make_shared<std::vector<std::byte>>();
    for (const float v : noise(element_count(shape), seed)) {
      // 0x3800 | ten bits of v: half precision between 0.5 and 1.
      const auto half =
          static_cast<std::uint16_t>(0x3800 | (std::bit_cast<std::uint32_t>(v) >> 10 & 0x3FF));
      const std::uint16_t bf16 = float_to_bf16(v);
      const void* from = type == DType::kF32    ? static_cast<const void*>(&v)
                         : type == DType::kBf16 ? static_cast<const void*>(&bf16)
                                                : &half;
      const auto* begin = static_cast<const std::byte*>(from);
      bytes->insert(bytes->end(), begin, begin + dtype_size(type));
    }
    return Tensor{type, std::move(shape), {*bytes, bytes}};
  };
  Linear linear{tensor({out, in}, dtype, 1), std::nullopt};
  if (with_lora)
    linear.lora = LoraPair{tensor({3, in}, DType::kF32, 2), tensor({out, 3}, DType::kF32, 3), 1.5};
  return linear;
}

TEST_CASE("linear layers with and without updates agree with double") {
  Context context(2);
  for (const DType dtype : {DType::kBf16, DType::kF16, DType::kF32}) {
    for (const bool with_lora : {false, true}) {
      const std::int64_t n_in = 50, n_out = 130, rows = 70;
      const Linear layer = some_linear(n_out, n_in, dtype, with_lora);
      Matrix x;
      Tiles x_tiles, y;
      fill(x, rows, n_in, noise(rows * n_in, 4));
      to_tiles(context.pool, x, x_tiles);
      apply(context, x_tiles, {{layer, y}});
      const auto values = [](const Tensor& t) {
        std::vector<float> v(static_cast<std::size_t>(t.size()));
        widen(t.dtype, t.data.bytes, v);
        return v;
      };
      const std::vector<float> w = values(layer.weight);
      const auto dot = [](const float* a, const float* b, std::int64_t n) {
        double sum = 0;
        for (std::int64_t i = 0; i < n; ++i)
          sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
        return sum;
      };
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t o = 0; o < n_out; ++o) {
          double expected = dot(w.data() + o * n_in, x.row(row), n_in);
          if (with_lora) {
            const std::vector<float> a = values(layer.lora->a), b = values(layer.lora->b);
            for (std::int64_t r = 0; r < 3; ++r) {
              expected += 1.5 * static_cast<double>(b[static_cast<std::size_t>(o * 3 + r)]) *
                          dot(a.data() + r * n_in, x.row(row), n_in);
            }
          }
          REQUIRE(std::abs(static_cast<double>(y.at(row, o)) - expected) < 1e-4);
        }
      }
    }
  }
}

TEST_CASE("a row of a linear layer is the same bits in any place of any number of rows") {
  Context context(1);
  const std::int64_t n_in = 90, n_out = 70;
  const Linear layer = some_linear(n_out, n_in, DType::kBf16, true);
  const Linear up = some_linear(n_out, n_in, DType::kF16, false);
  const std::vector<float> values = noise(300 * n_in, 5);
  std::vector<std::vector<float>> alone(300);
  Matrix x;
  Tiles x_tiles, y, act;
  for (std::int64_t rows = 1; rows <= 300; ++rows) {
    // The rows end with row `rows - 1`, so every one of them meets many places.
    fill(x, rows, n_in, values);
    to_tiles(context.pool, x, x_tiles);
    apply(context, x_tiles, {{layer, y}});
    apply_swiglu(context, x_tiles, layer, up, act);
    for (std::int64_t row = 0; row < rows; ++row) {
      std::vector<float> got;
      for (std::int64_t o = 0; o < n_out; ++o) got.push_back(y.at(row, o));
      for (std::int64_t o = 0; o < n_out; ++o) got.push_back(act.at(row, o));
      auto& expected = alone[static_cast<std::size_t>(row)];
      if (row == rows - 1) {
        fill(x, 1, n_in, {values.begin() + row * n_in, values.begin() + (row + 1) * n_in});
        Tiles one, one_y, one_act;
        to_tiles(context.pool, x, one);
        apply(context, one, {{layer, one_y}});
        apply_swiglu(context, one, layer, up, one_act);
        for (std::int64_t o = 0; o < n_out; ++o) expected.push_back(one_y.at(0, o));
        for (std::int64_t o = 0; o < n_out; ++o) expected.push_back(one_act.at(0, o));
      }
      REQUIRE(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("attention over a cut chain agrees with double") {
  Context context(2);
  const std::int64_t rows = 150, n_heads = 4, n_kv_heads = 2, width = 6;
  const std::vector<Run> runs = runs_of_chain({37, 100, 13});
  Matrix q, k, v, out;
  fill(q, rows, n_heads * width, noise(rows * n_heads * width, 1, 4));
  fill(k, rows, n_kv_heads * width, noise(rows * n_kv_heads * width, 2, 4));
  fill(v, rows, n_kv_heads * width, noise(rows * n_kv_heads * width, 3));
  std::vector<std::int64_t> all(static_cast<std::size_t>(rows));
  std::iota(all.begin(), all.end(), 0);
  const std::vector<QueryTile> tiles = make_query_tiles(runs, all);
  attention(context, {q, k, v, n_heads, n_kv_heads, width, runs, tiles}, out);
  double worst = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t h = 0; h < n_heads; ++h) {
      std::vector<double> sum(static_cast<std::size_t>(width));
      double total = 0;
      for (std::int64_t key = 0; key <= row; ++key) {
        double score = 0;
        for (std::int64_t d = 0; d < width; ++d) {
          score += static_cast<double>(q.row(row)[h * width + d]) *
                   static_cast<double>(k.row(key)[h / 2 * width + d]);
        }
        const double weight = std::exp(score / std::sqrt(static_cast<double>(width)));
        total += weight;
        for (std::int64_t d = 0; d < width; ++d) {
          sum[static_cast<std::size_t>(d)] +=
              weight * static_cast<double>(v.row(key)[h / 2 * width + d]);
        }
      }
      for (std::int64_t d = 0; d < width; ++d) {
        const double got = static_cast<double>(out.row(row)[h * width + d]);
        worst = std::max(worst, std::abs(got - sum[static_cast<std::size_t>(d)] / total));
      }
    }
  }
  CHECK(worst < 5e-6);
}

}  // namespace
}  // namespace jemm::cpu

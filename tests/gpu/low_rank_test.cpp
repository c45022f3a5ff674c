// Kernels that apply low-rank updates, against naive twins in double.
#include <algorithm>
#include <utility>

#include "gpu/kernels/kernels.h"
#include "gpu/support.h"

namespace jemm {
namespace {

using test::at;
using test::bf16;
using test::close;
using test::OnDevice;
using test::rounded;
using test::sigmoid;
using test::uniform;

// A product of `n_rows` with its low-rank inputs behind the outputs, and what the updates make of
// it.
template <typename T>
struct LowRankCase {
  LowRankCase(std::int64_t n_rows, std::vector<std::int32_t> layer_ends, std::int32_t rank,
              std::int64_t gap)
      : ends(std::move(layer_ends)),
        n_out(ends.back() + gap),
        stride(n_out + std::ssize(ends) * rank),
        y(rounded<T>(uniform(n_rows * stride, 5, -1, 1))),
        b(rounded<T>(uniform(rank * n_out, 6, -1, 1))) {
    for (std::int64_t r = 0; r < n_rows; ++r) {
      for (std::int64_t o = 0; o < ends.back(); ++o) {
        std::int64_t layer = 0;
        while (o >= ends[static_cast<std::size_t>(layer)]) ++layer;
        double sum = at(y, r * stride + o);
        for (std::int64_t j = 0; j < rank; ++j) {
          sum += at(y, r * stride + n_out + layer * rank + j) * at(b, j * n_out + o);
        }
        sums.push_back(sum);
      }
    }
    args = {.stride = stride,
            .b_stride = n_out,
            .rank = rank,
            .n_layers = static_cast<std::int32_t>(ends.size())};
    std::copy(ends.begin(), ends.end(), args.ends);
  }
  gpu::LowRank<T> on(OnDevice<T>& dy, OnDevice<T>& db) const {
    gpu::LowRank<T> update = args;
    update.low = dy.data() + n_out;
    update.b = db.data();
    return update;
  }

  std::vector<std::int32_t> ends;
  std::int64_t n_out, stride;
  std::vector<float> y, b;
  std::vector<double> sums;  // [rows, ends.back()]
  gpu::LowRank<T> args;
};

template <typename T>
void check_low_rank(std::int64_t n_rows, const std::vector<std::int32_t>& ends, std::int32_t rank,
                    std::int64_t gap, const gpu::Stream& stream) {
  CAPTURE(n_rows);
  CAPTURE(rank);
  CAPTURE(ends.back());
  const LowRankCase<T> c(n_rows, ends, rank, gap);
  const std::int64_t width = ends.back();
  OnDevice<T> dy(c.y, stream), db(c.b, stream);
  gpu::add_low_rank(c.on(dy, db), n_rows, width, dy.data(), stream.get());
  const std::vector<float> stored = dy.values();
  std::vector<float> outputs, rest, expected_rest;
  for (std::int64_t r = 0; r < n_rows; ++r) {
    for (std::int64_t o = 0; o < c.stride; ++o) {
      const auto i = static_cast<std::size_t>(r * c.stride + o);
      (o < width ? outputs : rest).push_back(stored[i]);
      if (o >= width) expected_rest.push_back(c.y[i]);
    }
  }
  close<T>(outputs, c.sums, 2e-5);
  CHECK(test::same_bits(rest, expected_rest));

  if (width % 2 != 0) return;
  const std::int64_t half = width / 2;
  OnDevice<T> product(c.y, stream), out(n_rows * half, stream);
  std::vector<double> activated;
  for (std::int64_t r = 0; r < n_rows; ++r) {
    for (std::int64_t o = 0; o < half; ++o) {
      const double g = c.sums[static_cast<std::size_t>(r * width + o)];
      const double u = c.sums[static_cast<std::size_t>(r * width + half + o)];
      activated.push_back(g * sigmoid(g) * u);
    }
  }
  gpu::silu_multiply(c.on(product, db), product.data(), n_rows, half, out.data(), stream.get());
  close<T>(out.values(), activated, 1e-4);
}

TEST_CASE_TEMPLATE("low-rank updates in place and before the activation", T, float, bf16) {
  if (!test::has_device()) return;
  const gpu::Stream stream;
  for (const std::int64_t n_rows : {0, 1, 15, 16, 17, 63, 64, 65, 127, 1000}) {
    check_low_rank<T>(n_rows, {304}, 16, 0, stream);
    check_low_rank<T>(n_rows, {64, 192, 256, 296}, 16, 0, stream);
    check_low_rank<T>(n_rows, {64, 192, 240, 288}, 16, 0, stream);  // borders within 32 columns
    for (const std::int32_t rank : {0, 16, 32}) {
      check_low_rank<T>(n_rows, {320, 640}, rank, 8, stream);
    }
    check_low_rank<T>(n_rows, {101, 331, 334, 340}, 16, 4, stream);
    check_low_rank<T>(n_rows, {200, 400}, 32, 0, stream);
    check_low_rank<T>(n_rows, {41, 82}, 8, 3, stream);
  }
  check_low_rank<T>(8192, {32, 64}, 16, 0, stream);
  check_low_rank<T>(4100, {320, 640}, 16, 8, stream);  // shares of blocks that cross columns
}

TEST_CASE_TEMPLATE("a row's update does not depend on the others", T, float, bf16) {
  if (!test::has_device()) return;
  const gpu::Stream stream;
  constexpr std::int64_t kRows = 3000, kWidth = 640, kHalf = kWidth / 2;
  const LowRankCase<T> c(kRows, {kHalf, kWidth}, 16, 8);
  OnDevice<T> db(c.b, stream);
  const auto activated = [&](std::int64_t begin, std::int64_t n_rows) {
    OnDevice<T> y({c.y.begin() + begin * c.stride, c.y.begin() + (begin + n_rows) * c.stride},
                  stream);
    OnDevice<T> out(n_rows * kHalf, stream);
    gpu::silu_multiply(c.on(y, db), y.data(), n_rows, kHalf, out.data(), stream.get());
    return out.values();
  };
  const std::vector<float> all = activated(0, kRows);
  for (const auto& [begin, n_rows] : {std::pair{0, 1}, {5, 98}, {1003, 278}, {2999, 1}}) {
    const std::vector<float> some(all.begin() + begin * kHalf,
                                  all.begin() + (begin + n_rows) * kHalf);
    CHECK(test::same_bits(activated(begin, n_rows), some));
  }
}

template <typename T, typename Out>
void check_residual(std::int64_t n_rows, std::int32_t width, std::int32_t rank,
                    const gpu::Stream& stream) {
  CAPTURE(n_rows);
  CAPTURE(width);
  CAPTURE(rank);
  const LowRankCase<T> c(n_rows, {width}, rank, width % 4);
  const auto x = uniform(n_rows * width, 8, -2, 2), factor = uniform(width, 9, 0.5, 1.5);
  std::vector<double> sums, normed;
  for (std::int64_t r = 0; r < n_rows; ++r) {
    double squares = 0;
    for (std::int64_t i = r * width; i < (r + 1) * width; ++i) {
      sums.push_back(at(x, i) + c.sums[static_cast<std::size_t>(i)]);
      squares += sums.back() * sums.back();
    }
    const double inverse = 1 / std::sqrt(squares / width + 1e-6);
    for (std::int64_t i = 0; i < width; ++i) {
      normed.push_back(sums[static_cast<std::size_t>(r * width + i)] * inverse * at(factor, i));
    }
  }
  OnDevice<T> dy(c.y, stream), db(c.b, stream);
  OnDevice<float> dx(x, stream), dfactor(factor, stream);
  OnDevice<Out> dnormed(n_rows * width, stream);
  gpu::add_residual(c.on(dy, db), dy.data(), n_rows, width, dfactor.data(), 1e-6f, dx.data(),
                    dnormed.data(), stream.get());
  close<float>(dx.values(), sums, 2e-5);
  close<Out>(dnormed.values(), normed, 2e-5);
}

TEST_CASE_TEMPLATE("the residual stream and its norm", T, float, bf16) {
  if (!test::has_device()) return;
  const gpu::Stream stream;
  for (const std::int64_t n_rows : {0, 1, 63, 64, 65, 127, 513, 1000}) {
    for (const std::int32_t rank : {0, 8, 16, 32}) {
      for (const std::int32_t width : {24, 101, 3000}) {
        if (width == 3000 && n_rows > 513) continue;
        check_residual<T, T>(n_rows, width, rank, stream);
        if (rank == 16) check_residual<T, float>(n_rows, width, rank, stream);
      }
    }
  }
  check_residual<T, T>(8192, 64, 16, stream);
}

}  // namespace
}  // namespace jemm

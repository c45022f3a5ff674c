// Kernels that apply low-rank updates to a product, against naive twins in double.
#include "gpu/low_rank_case.h"

namespace jemm {
namespace {

using test::at;
using test::bf16;
using test::close;
using test::LowRankCase;
using test::OnDevice;
using test::sigmoid;

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

}  // namespace
}  // namespace jemm

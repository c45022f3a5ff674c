// The residual stream and its norm, against a naive twin in double.
#include <cmath>

#include "gpu/low_rank_case.h"

namespace jemm {
namespace {

using test::at;
using test::bf16;
using test::close;
using test::LowRankCase;
using test::OnDevice;
using test::uniform;

template <typename T, typename Out>
struct ResidualCase {
  ResidualCase(std::int64_t n_rows, std::int32_t width, std::int32_t rank)
      : product(n_rows, {width}, rank, width % 4),
        x(uniform(n_rows * width, 8, -2, 2)),
        factor(uniform(width, 9, 0.5, 1.5)) {}

  /// Of `n` rows from `first`: the sums and the normed rows, both [n, width].
  std::pair<std::vector<float>, std::vector<float>> on_device(std::int64_t first, std::int64_t n,
                                                              const gpu::Stream& stream) const {
    const auto width = std::ssize(factor);
    const auto rows = [&](const std::vector<float>& all, std::int64_t stride) {
      return std::vector(all.begin() + first * stride, all.begin() + (first + n) * stride);
    };
    OnDevice<T> dy(rows(product.y, product.stride), stream), db(product.b, stream);
    OnDevice<float> dx(rows(x, width), stream), dfactor(factor, stream);
    OnDevice<Out> normed(n * width, stream);
    gpu::add_residual(product.on(dy, db), dy.data(), n, width, dfactor.data(), 1e-6f, dx.data(),
                      normed.data(), stream.get());
    return {dx.values(), normed.values()};
  }

  LowRankCase<T> product;
  std::vector<float> x, factor;
};

template <typename T, typename Out>
void check_residual(std::int64_t n_rows, std::int32_t width, std::int32_t rank,
                    const gpu::Stream& stream) {
  CAPTURE(n_rows);
  CAPTURE(width);
  CAPTURE(rank);
  const ResidualCase<T, Out> c(n_rows, width, rank);
  std::vector<double> sums, normed;
  for (std::int64_t r = 0; r < n_rows; ++r) {
    double squares = 0;
    for (std::int64_t i = r * width; i < (r + 1) * width; ++i) {
      sums.push_back(at(c.x, i) + c.product.sums[static_cast<std::size_t>(i)]);
      squares += sums.back() * sums.back();
    }
    const double inverse = 1 / std::sqrt(squares / width + 1e-6);
    for (std::int64_t i = 0; i < width; ++i) {
      normed.push_back(sums[static_cast<std::size_t>(r * width + i)] * inverse * at(c.factor, i));
    }
  }
  const auto [x, y] = c.on_device(0, n_rows, stream);
  close<float>(x, sums, 2e-5);
  close<Out>(y, normed, 2e-5);
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
  for (const std::int64_t n_rows : {1, 7, 8, 9, 98}) {
    check_residual<T, T>(n_rows, 5120, 16, stream);
    check_residual<T, T>(n_rows, 6000, 16, stream);
  }
  check_residual<T, T>(65, 3000, 3, stream);
  check_residual<T, T>(8192, 64, 16, stream);
}

TEST_CASE_TEMPLATE("a row's residual sums have the same bits alone and among others", T, float,
                   bf16) {
  if (!test::has_device()) return;
  const gpu::Stream stream;
  constexpr std::int64_t kRows = 600;
  const ResidualCase<T, T> c(kRows, 5120, 16);
  const auto [x, normed] = c.on_device(0, kRows, stream);
  const std::pair<std::int64_t, std::int64_t> ranges[] = {{0, 1},    {3, 1},   {5, 12}, {7, 8},
                                                          {300, 64}, {1, 300}, {599, 1}};
  for (const auto& [first, n] : ranges) {
    CAPTURE(first);
    const auto part = c.on_device(first, n, stream);
    const auto same = [&, first = first](const std::vector<float>& some,
                                         const std::vector<float>& all) {
      return std::memcmp(some.data(), &all[static_cast<std::size_t>(first * 5120)],
                         some.size() * sizeof(float)) == 0;
    };
    CHECK(same(part.first, x));
    CHECK(same(part.second, normed));
  }
}

}  // namespace
}  // namespace jemm

// A product and a low-rank update of it, for the tests of the kernels that apply one.
#pragma once

#include <algorithm>
#include <utility>

#include "gpu/kernels/kernels.h"
#include "gpu/support.h"

namespace jemm::test {

/// A product of `n_rows` with its low-rank inputs behind the outputs, and what the updates make of
/// it.
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

}  // namespace jemm::test

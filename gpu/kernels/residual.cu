// The residual stream: a block's output added, then the norm that the next block reads.
//
// A block takes kRows rows, so that the factors of the low-rank update are read once for all of
// them, reads everything before it computes, and keeps the sums in registers until their norm is
// known. Bound by the bytes of x, y and the normed rows. A thread's columns, and so a row's sum, do
// not depend on kRows.
#include "gpu/cuda.h"
#include "gpu/kernels/device.cuh"
#include "gpu/kernels/kernels.h"

namespace jemm::gpu {
namespace {

constexpr int kThreads = 640;
constexpr int kThreadColumns = 8;
constexpr int kManyRows = 4;
constexpr std::int64_t kFewRows = 512;  // up to here a row a block, so that all are at work
constexpr std::int64_t kMaxShared = 48 * 1024;

template <typename T, typename Out>
struct Residual {
  const T* y = nullptr;
  const float* factor = nullptr;
  float* x = nullptr;
  Out* normed = nullptr;
  std::int64_t n_rows = 0;
  int width = 0;
  float eps = 0;
};

// Neighbours, moved at once.
template <typename T, int kColumns>
struct alignas(sizeof(T) * kColumns) Neighbours {
  T values[kColumns];

  __device__ static Neighbours at(const T* p) { return *reinterpret_cast<const Neighbours*>(p); }
  __device__ void store(T* p) const { *reinterpret_cast<Neighbours*>(p) = *this; }
};

template <typename T, typename Out, int kRows, int kColumns>
__global__ void __launch_bounds__(kThreads)
    residual_kernel(LowRank<T> update, Residual<T, Out> target) {
  constexpr int kSteps = kThreadColumns / kColumns;
  constexpr int kUnroll = kRows == 1 ? 8 : 4;  // factors under way; four rows leave few registers
  extern __shared__ float low[];               // [rank, kRows]
  __shared__ float partial[kThreads / 32];
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kRows;
  const int n_rows = static_cast<int>(min(static_cast<std::int64_t>(kRows), target.n_rows - first));
  const auto column_of = [](int step) {
    return (step * kThreads + static_cast<int>(threadIdx.x)) * kColumns;
  };
  const auto row_of = [&](int i) { return first + min(i, n_rows - 1); };
  Neighbours<T, kColumns> y[kSteps][kRows] = {};
  Neighbours<float, kColumns> x[kSteps][kRows] = {};
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const int column = column_of(step);
    if (column >= target.width) break;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      y[step][i] = y[step][i].at(target.y + row_of(i) * update.stride + column);
      x[step][i] = x[step][i].at(target.x + row_of(i) * target.width + column);
    }
  }
  for (int i = static_cast<int>(threadIdx.x); i < kRows * update.rank; i += kThreads) {
    low[i] = to_float(update.low[row_of(i % kRows) * update.stride + i / kRows]);
  }
  __syncthreads();

  float squares[kRows] = {};
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const int column = column_of(step);
    if (column >= target.width) break;
    float sums[kRows][kColumns] = {};
#pragma unroll kUnroll
    for (int j = 0; j < update.rank; ++j) {
      const auto b = Neighbours<T, kColumns>::at(update.b + j * update.b_stride + column);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        const float factor = to_float(b.values[c]);
#pragma unroll
        for (int i = 0; i < kRows; ++i) sums[i][c] += low[j * kRows + i] * factor;
      }
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        float& value = x[step][i].values[c];
        value += to_float(y[step][i].values[c]) + sums[i][c];
        squares[i] += value * value;
      }
      if (i < n_rows) x[step][i].store(target.x + (first + i) * target.width + column);
    }
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const float sum = block_sum<kThreads>(squares[i], partial);
    squares[i] = 1.0f / sqrtf(sum / static_cast<float>(target.width) + target.eps);
  }
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const int column = column_of(step);
    if (column >= target.width) break;
    const auto factor = Neighbours<float, kColumns>::at(target.factor + column);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      Neighbours<Out, kColumns> normed;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        normed.values[c] = from_float<Out>(x[step][i].values[c] * squares[i] * factor.values[c]);
      }
      if (i < n_rows) normed.store(target.normed + (first + i) * target.width + column);
    }
  }
}

template <int kColumns, typename T, typename Out>
void launch(const LowRank<T>& update, const Residual<T, Out>& target, StreamHandle stream) {
  const bool many = target.n_rows > kFewRows;
  const int rows = many ? kManyRows : 1;
  const auto shared = static_cast<std::int64_t>(sizeof(float)) * rows * update.rank;
  check_limit("low-rank inputs in bytes", shared, kMaxShared);
  check_limit("a hidden size", target.width, kThreads * kThreadColumns);
  auto* kernel =
      many ? &residual_kernel<T, Out, kManyRows, kColumns> : &residual_kernel<T, Out, 1, kColumns>;
  kernel<<<static_cast<unsigned>((target.n_rows + rows - 1) / rows), kThreads,
           static_cast<std::size_t>(shared), stream>>>(update, target);
  check_launch("add_residual");
}

}  // namespace

template <typename T, typename Out>
void add_residual(const LowRank<T>& update, const T* y, std::int64_t n_rows, std::int64_t width,
                  const float* factor, float eps, float* x, Out* normed, StreamHandle stream) {
  if (n_rows == 0) return;
  const Residual<T, Out> target{.y = y,
                                .factor = factor,
                                .x = x,
                                .normed = normed,
                                .n_rows = n_rows,
                                .width = static_cast<int>(width),
                                .eps = eps};
  if (width % 4 == 0 && update.stride % 4 == 0 && update.b_stride % 4 == 0) {
    launch<4>(update, target, stream);
  } else {
    launch<1>(update, target, stream);
  }
}

#define JEMM_INSTANTIATE(T, Out)                                                      \
  template void add_residual(const LowRank<T>&, const T*, std::int64_t, std::int64_t, \
                             const float*, float, float*, Out*, StreamHandle);
JEMM_INSTANTIATE(float, float)
JEMM_INSTANTIATE(__nv_bfloat16, float)
JEMM_INSTANTIATE(__nv_bfloat16, __nv_bfloat16)
#undef JEMM_INSTANTIATE

}  // namespace jemm::gpu

// The residual stream: a block's output added, then the norm that the next block reads.
//
// A block takes kRows rows, so that the factors of the low-rank update are read once for all of
// them, and goes over the columns twice; the second time they come from its cache. Bound by the
// bytes of x, y and the normed rows. A thread's columns, and so a row's sum, do not depend on
// kRows.
#include <algorithm>

#include "gpu/cuda.h"
#include "gpu/kernels/device.cuh"
#include "gpu/kernels/kernels.h"

namespace jemm::gpu {
namespace {

constexpr int kThreads = 640;
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

__device__ void load(const float* from, float (&to)[1]) {
  to[0] = from[0];
}
__device__ void load(const float* from, float (&to)[4]) {
  const float4 four = *reinterpret_cast<const float4*>(from);
  to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
}
__device__ void load(const __nv_bfloat16* from, float (&to)[1]) {
  to[0] = to_float(from[0]);
}
__device__ void load(const __nv_bfloat16* from, float (&to)[4]) {
  const uint2 four = *reinterpret_cast<const uint2*>(from);
  to[0] = __uint_as_float(four.x << 16), to[1] = __uint_as_float(four.x & 0xffff0000U);
  to[2] = __uint_as_float(four.y << 16), to[3] = __uint_as_float(four.y & 0xffff0000U);
}

template <typename T>
__device__ void store(const float (&from)[1], T* to) {
  to[0] = from_float<T>(from[0]);
}
__device__ void store(const float (&from)[4], float* to) {
  *reinterpret_cast<float4*>(to) = make_float4(from[0], from[1], from[2], from[3]);
}
__device__ void store(const float (&from)[4], __nv_bfloat16* to) {
  const __nv_bfloat162 pairs[2] = {__floats2bfloat162_rn(from[0], from[1]),
                                   __floats2bfloat162_rn(from[2], from[3])};
  *reinterpret_cast<uint2*>(to) = *reinterpret_cast<const uint2*>(pairs);
}

template <typename T, typename Out, int kRows, int kColumns>
__global__ void __launch_bounds__(kThreads)
    residual_kernel(LowRank<T> update, Residual<T, Out> target) {
  extern __shared__ float low[];  // [rank, kRows]
  __shared__ float partial[kThreads / 32];
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kRows;
  const int n_rows = static_cast<int>(min(static_cast<std::int64_t>(kRows), target.n_rows - first));
  const T* y = target.y + first * update.stride;
  float* x = target.x + first * target.width;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * update.rank; i += kThreads) {
    const int row = min(i % kRows, n_rows - 1);
    low[i] = to_float(update.low[(first + row) * update.stride + i / kRows]);
  }
  __syncthreads();

  const int begin = static_cast<int>(threadIdx.x) * kColumns;
  float squares[kRows] = {};
  for (int column = begin; column < target.width; column += kThreads * kColumns) {
    float base[kRows][kColumns], stream[kRows][kColumns], sums[kRows][kColumns] = {};
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int row = min(i, n_rows - 1);
      load(y + row * update.stride + column, base[i]);
      load(x + static_cast<std::int64_t>(row) * target.width + column, stream[i]);
    }
#pragma unroll 8
    for (int j = 0; j < update.rank; ++j) {
      float b[kColumns];
      load(update.b + j * update.b_stride + column, b);
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
#pragma unroll
        for (int c = 0; c < kColumns; ++c) sums[i][c] += low[j * kRows + i] * b[c];
      }
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        stream[i][c] += base[i][c] + sums[i][c];
        squares[i] += stream[i][c] * stream[i][c];
      }
      if (i < n_rows) store(stream[i], x + static_cast<std::int64_t>(i) * target.width + column);
    }
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const float sum = block_sum<kThreads>(squares[i], partial);
    squares[i] = 1.0f / sqrtf(sum / static_cast<float>(target.width) + target.eps);
  }
  for (int column = begin; column < target.width; column += kThreads * kColumns) {
    float factor[kColumns];
    load(target.factor + column, factor);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (i >= n_rows) break;
      float values[kColumns];
      load(x + static_cast<std::int64_t>(i) * target.width + column, values);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) values[c] *= squares[i] * factor[c];
      store(values, target.normed + (first + i) * target.width + column);
    }
  }
}

template <int kColumns, typename T, typename Out>
void launch(const LowRank<T>& update, const Residual<T, Out>& target, StreamHandle stream) {
  const bool many = target.n_rows > kFewRows;
  const int rows = many ? kManyRows : 1;
  const auto shared = static_cast<std::int64_t>(sizeof(float)) * rows * update.rank;
  check_limit("low-rank inputs in bytes", shared, kMaxShared);
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

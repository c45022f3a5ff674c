// The second factor of the low-rank updates, applied where the product is consumed.
//
// A block takes 16 rows; a thread keeps the factors of its column (or of two) in registers and goes
// through the rows, whose low-rank inputs are in shared memory. 16 multiply-adds an element; bound
// by the bytes of y. Results of a row do not depend on the others.
#include <algorithm>

#include "gpu/cuda.h"
#include "gpu/kernels/device.cuh"
#include "gpu/kernels/kernels.h"

namespace jemm::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int kRows = 16;
constexpr std::int64_t kMaxShared = 200 * 1024;

// low [kRows, n_layers rank] of the block's rows, the parts added up.
__device__ void load_low(const LowRank& update, std::int64_t first_row, int n_rows, float* low) {
  const int width = update.n_layers * update.rank;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * width; i += kThreads) {
    const int row = i / width, column = i % width;
    float sum = 0;
    if (row < n_rows) {
      const float* from = update.low + (first_row + row) * update.stride + column;
      for (int p = update.n_parts - 1; p >= 0; --p) sum += from[p * update.part_stride];
    }
    low[i] = sum;
  }
  __syncthreads();
}

// out[row] = the update of one column in the block's rows.
template <int kRank>
__device__ void column_update(const LowRank& update, const float* low, int column,
                              float (&out)[kRows]) {
  for (float& x : out) x = 0;
  const int rank = kRank != 0 ? kRank : update.rank;
  if (rank == 0) return;
  int layer = 0;
  while (column >= update.ends[layer]) ++layer;
  const float* b = update.b + static_cast<std::int64_t>(column) * rank;
  const float* x = low + layer * rank;
  const int width = update.n_layers * rank;
  if constexpr (kRank != 0) {
    float factors[kRank];
#pragma unroll
    for (int j = 0; j < kRank; j += 4) {
      const float4 four = *reinterpret_cast<const float4*>(b + j);
      factors[j] = four.x, factors[j + 1] = four.y, factors[j + 2] = four.z;
      factors[j + 3] = four.w;
    }
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
#pragma unroll
      for (int j = 0; j < kRank; j += 4) {
        const float4 four = *reinterpret_cast<const float4*>(x + row * width + j);
        out[row] += four.x * factors[j] + four.y * factors[j + 1] + four.z * factors[j + 2] +
                    four.w * factors[j + 3];
      }
    }
  } else {
    for (int j = 0; j < rank; ++j) {
      const float factor = b[j];
#pragma unroll
      for (int row = 0; row < kRows; ++row) out[row] += x[row * width + j] * factor;
    }
  }
}

enum class Consumer { kStore, kResidual, kSiluMultiply };

template <typename T>
struct Target {
  const T* y = nullptr;  // base product
  T* out = nullptr;
  std::int64_t n_rows = 0, width = 0, y_stride = 0, out_stride = 0;
};

template <typename T, Consumer kConsumer, int kRank>
__global__ void __launch_bounds__(kThreads) consume_kernel(LowRank update, Target<T> target) {
  extern __shared__ float4 shared[];
  float* low = reinterpret_cast<float*>(shared);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * kRows;
  const int n_rows = static_cast<int>(min(static_cast<std::int64_t>(kRows), target.n_rows - first));
  load_low(update, first, n_rows, low);
  const int column = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (column >= target.width) return;
  float u[kRows];
  column_update<kRank>(update, low, column, u);
  const T* y = target.y + first * target.y_stride + column;
  T* out = target.out + first * target.out_stride + column;
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    if (row < n_rows) u[row] = rounded<T>(to_float(y[row * target.y_stride]) + u[row]);
  }
  if constexpr (kConsumer == Consumer::kSiluMultiply) {
    float up[kRows];
    column_update<kRank>(update, low, column + static_cast<int>(target.width), up);
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      if (row >= n_rows) continue;
      const float second =
          rounded<T>(to_float(y[row * target.y_stride + target.width]) + up[row]);
      out[row * target.out_stride] = from_float<T>(silu(u[row]) * second);
    }
  } else {
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      if (row >= n_rows) continue;
      T& x = out[row * target.out_stride];
      x = from_float<T>(kConsumer == Consumer::kResidual ? to_float(x) + u[row] : u[row]);
    }
  }
}

template <typename T, Consumer kConsumer>
void consume(const LowRank& update, const Target<T>& target, StreamHandle stream) {
  if (target.n_rows == 0) return;
  const auto shared = static_cast<std::size_t>(kRows * update.n_layers * update.rank) * sizeof(float);
  check_limit("low-rank inputs in bytes", static_cast<std::int64_t>(shared), kMaxShared);
  auto* kernel = update.rank == 16 ? &consume_kernel<T, kConsumer, 16> : &consume_kernel<T, kConsumer, 0>;
  if (shared > 48 * 1024) {
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(shared)),
               "low_rank");
  }
  const dim3 grid(static_cast<unsigned>((target.width + kThreads - 1) / kThreads),
                  static_cast<unsigned>((target.n_rows + kRows - 1) / kRows));
  kernel<<<grid, kThreads, shared, stream>>>(update, target);
  check_launch("low_rank");
}

}  // namespace

template <typename T>
void add_low_rank(const LowRank& update, std::int64_t n_rows, std::int64_t width,
                  std::int64_t stride, T* y, StreamHandle stream) {
  if (update.rank == 0) return;
  consume<T, Consumer::kStore>(update,
                               {.y = y,
                                .out = y,
                                .n_rows = n_rows,
                                .width = width,
                                .y_stride = stride,
                                .out_stride = stride},
                               stream);
}

template <typename T>
void add_residual(const LowRank& update, const T* y, std::int64_t n_rows, std::int64_t width, T* x,
                  StreamHandle stream) {
  consume<T, Consumer::kResidual>(update,
                                  {.y = y,
                                   .out = x,
                                   .n_rows = n_rows,
                                   .width = width,
                                   .y_stride = width,
                                   .out_stride = width},
                                  stream);
}

template <typename T>
void silu_multiply(const LowRank& update, const T* y, std::int64_t n_rows, std::int64_t n_outputs,
                   T* out, StreamHandle stream) {
  consume<T, Consumer::kSiluMultiply>(update,
                                      {.y = y,
                                       .out = out,
                                       .n_rows = n_rows,
                                       .width = n_outputs,
                                       .y_stride = 2 * n_outputs,
                                       .out_stride = n_outputs},
                                      stream);
}

#define JEMM_INSTANTIATE(T)                                                                       \
  template void add_low_rank(const LowRank&, std::int64_t, std::int64_t, std::int64_t, T*,        \
                             StreamHandle);                                                       \
  template void add_residual(const LowRank&, const T*, std::int64_t, std::int64_t, T*,            \
                             StreamHandle);                                                       \
  template void silu_multiply(const LowRank&, const T*, std::int64_t, std::int64_t, T*,           \
                              StreamHandle);
JEMM_INSTANTIATE(float)
JEMM_INSTANTIATE(__nv_bfloat16)
#undef JEMM_INSTANTIATE

}  // namespace jemm::gpu

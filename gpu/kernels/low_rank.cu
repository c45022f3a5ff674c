// The second factor of the low-rank updates, applied where the product is consumed.
//
// A block takes kRows rows; a thread keeps the factors of two columns (of one where offsets are odd
// or the rank is not 16) in registers and goes through the rows, whose low-rank inputs are in
// shared memory, kGroup rows at a time: all of a group is read before any of it is written. 16
// multiply-adds an element; bound by the bytes of y. Results of a row do not depend on the others.
#include <algorithm>

#include "gpu/cuda.h"
#include "gpu/kernels/device.cuh"
#include "gpu/kernels/kernels.h"

namespace jemm::gpu {
namespace {

constexpr int kThreads = 128;
constexpr int kRows = 32;
constexpr int kGroup = 8;
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

// The factors of kColumns neighbouring columns of one layer. kRank 0: any rank, read as they are
// used.
template <int kRank, int kColumns>
class Factors {
 public:
  __device__ Factors(const LowRank& update, int column) : rank_(kRank != 0 ? kRank : update.rank) {
    if (rank_ == 0) return;
    int layer = 0;
#pragma unroll
    for (int i = 0; i < 3; ++i) layer += i + 1 < update.n_layers && column >= update.ends[i];
    offset_ = layer * rank_;
    b_ = update.b + static_cast<std::int64_t>(column) * rank_;
    if constexpr (kRank != 0) {
#pragma unroll
      for (int j = 0; j < kColumns * kRank; j += 4) {
        const float4 four = *reinterpret_cast<const float4*>(b_ + j);
        float* to = &factors_[j / kRank][j % kRank];
        to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
      }
    }
  }

  /// sum += the update of a row whose low-rank inputs are `low`.
  __device__ void add(const float* low, float (&sum)[kColumns]) const {
    const float* x = low + offset_;
    if constexpr (kRank != 0) {
      float update[kColumns] = {};
#pragma unroll
      for (int j = 0; j < kRank; j += 4) {
        const float4 four = *reinterpret_cast<const float4*>(x + j);
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          update[c] += four.x * factors_[c][j] + four.y * factors_[c][j + 1] +
                       four.z * factors_[c][j + 2] + four.w * factors_[c][j + 3];
        }
      }
#pragma unroll
      for (int c = 0; c < kColumns; ++c) sum[c] += update[c];
    } else {
      static_assert(kColumns == 1);
      float update = 0;
      for (int j = 0; j < rank_; ++j) update += x[j] * b_[j];
      sum[0] += update;
    }
  }

 private:
  int rank_, offset_ = 0;
  const float* b_ = nullptr;
  float factors_[kColumns][kRank != 0 ? kRank : 1];
};

enum class Consumer { kStore, kResidual, kSiluMultiply };

template <typename T, typename Out>
struct Target {
  const T* y = nullptr;  // base product
  Out* out = nullptr;
  std::int64_t n_rows = 0, width = 0, y_stride = 0, out_stride = 0;
};

template <int kColumns, typename T>
__device__ void load_columns(const T* from, float (&to)[kColumns]) {
  if constexpr (kColumns == 2) {
    const float2 pair = load_pair(from);
    to[0] = pair.x, to[1] = pair.y;
  } else {
    to[0] = to_float(from[0]);
  }
}

template <int kColumns, typename T>
__device__ void store_columns(const float (&from)[kColumns], T* to) {
  if constexpr (kColumns == 2) {
    store_pair(to, {from[0], from[1]});
  } else {
    to[0] = from_float<T>(from[0]);
  }
}

template <typename T, typename Out, Consumer kConsumer, int kRank, int kColumns>
__global__ void __launch_bounds__(kThreads) consume_kernel(LowRank update, Target<T, Out> target) {
  extern __shared__ float4 shared[];
  float* low = reinterpret_cast<float*>(shared);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * kRows;
  const int n_rows = static_cast<int>(min(static_cast<std::int64_t>(kRows), target.n_rows - first));
  load_low(update, first, n_rows, low);
  const int column = static_cast<int>(blockIdx.x * kThreads + threadIdx.x) * kColumns;
  if (column >= target.width) return;
  const T* y = target.y + first * target.y_stride + column;
  Out* out = target.out + first * target.out_stride + column;
  const Factors<kRank, kColumns> factors(update, column);
  const Factors<kRank, kColumns> second(update, kConsumer == Consumer::kSiluMultiply
                                                    ? column + static_cast<int>(target.width)
                                                    : column);
  const int low_width = update.n_layers * update.rank;

  for (int begin = 0; begin < n_rows; begin += kGroup) {
    float base[kGroup][kColumns], other[kGroup][kColumns];
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      const int row = min(begin + i, n_rows - 1);
      load_columns<kColumns>(y + row * target.y_stride, base[i]);
      if constexpr (kConsumer == Consumer::kSiluMultiply) {
        load_columns<kColumns>(y + row * target.y_stride + target.width, other[i]);
      } else if constexpr (kConsumer == Consumer::kResidual) {
        load_columns<kColumns>(out + row * target.out_stride, other[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      const float* row_low = low + (begin + i) * low_width;
      factors.add(row_low, base[i]);
      if constexpr (kConsumer == Consumer::kSiluMultiply) second.add(row_low, other[i]);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        if constexpr (kConsumer == Consumer::kSiluMultiply) {
          base[i][c] = silu_for<T>(base[i][c]) * other[i][c];
        } else if constexpr (kConsumer == Consumer::kResidual) {
          base[i][c] += other[i][c];
        }
      }
      if (begin + i < n_rows) {
        store_columns<kColumns>(base[i], out + (begin + i) * target.out_stride);
      }
    }
  }
}

// Two columns a thread where all offsets are even.
bool takes_pairs(const LowRank& update, std::int64_t width, std::int64_t stride) {
  bool even = update.rank == 16 && width % 2 == 0 && stride % 2 == 0;
  for (int i = 0; i < update.n_layers; ++i) even = even && update.ends[i] % 2 == 0;
  return even;
}

template <Consumer kConsumer, typename T, typename Out>
void consume(const LowRank& update, const Target<T, Out>& target, StreamHandle stream) {
  if (target.n_rows == 0) return;
  const auto shared =
      static_cast<std::size_t>(kRows * update.n_layers * update.rank) * sizeof(float);
  check_limit("low-rank inputs in bytes", static_cast<std::int64_t>(shared), kMaxShared);
  const bool pairs = takes_pairs(update, target.width, target.y_stride);
  auto* kernel =
      pairs ? &consume_kernel<T, Out, kConsumer, 16, 2> : &consume_kernel<T, Out, kConsumer, 0, 1>;
  if (shared > 48 * 1024) {
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(shared)),
               "low_rank");
  }
  const int columns = kThreads * (pairs ? 2 : 1);
  const dim3 grid(static_cast<unsigned>((target.width + columns - 1) / columns),
                  static_cast<unsigned>((target.n_rows + kRows - 1) / kRows));
  kernel<<<grid, kThreads, shared, stream>>>(update, target);
  check_launch("low_rank");
}

}  // namespace

template <typename T>
void add_low_rank(const LowRank& update, std::int64_t n_rows, std::int64_t width,
                  std::int64_t stride, T* y, StreamHandle stream) {
  if (update.rank == 0) return;
  consume<Consumer::kStore>(update,
                            Target<T, T>{.y = y,
                                         .out = y,
                                         .n_rows = n_rows,
                                         .width = width,
                                         .y_stride = stride,
                                         .out_stride = stride},
                            stream);
}

template <typename T>
void add_residual(const LowRank& update, const T* y, std::int64_t n_rows, std::int64_t width,
                  float* x, StreamHandle stream) {
  consume<Consumer::kResidual>(update,
                               Target<T, float>{.y = y,
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
  consume<Consumer::kSiluMultiply>(update,
                                   Target<T, T>{.y = y,
                                                .out = out,
                                                .n_rows = n_rows,
                                                .width = n_outputs,
                                                .y_stride = 2 * n_outputs,
                                                .out_stride = n_outputs},
                                   stream);
}

#define JEMM_INSTANTIATE(T)                                                                \
  template void add_low_rank(const LowRank&, std::int64_t, std::int64_t, std::int64_t, T*, \
                             StreamHandle);                                                \
  template void add_residual(const LowRank&, const T*, std::int64_t, std::int64_t, float*, \
                             StreamHandle);                                                \
  template void silu_multiply(const LowRank&, const T*, std::int64_t, std::int64_t, T*,    \
                              StreamHandle);
JEMM_INSTANTIATE(float)
JEMM_INSTANTIATE(__nv_bfloat16)
#undef JEMM_INSTANTIATE

}  // namespace jemm::gpu

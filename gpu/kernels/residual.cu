// The residual stream: a block's output added, then the norm that the next block reads.
//
// A block of threads takes kRows rows at a time, reads the next ones while it computes, and keeps
// their sums in registers until the norm is known. The factors of the low-rank update are copied to
// shared memory once, where they fit. Bound by the bytes of x, y and the normed rows. A thread's
// columns, and so a row's sum, do not depend on kRows.
#include <algorithm>

#include "gpu/cuda.h"
#include "gpu/kernels/device.cuh"
#include "gpu/kernels/kernels.h"
#include "gpu/kernels/tile_product.cuh"

namespace jemm::gpu {
namespace {

constexpr int kThreads = 640;
constexpr int kThreadColumns = 8;

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

template <int kColumns>
__device__ int column_of(int step) {
  return (step * kThreads + static_cast<int>(threadIdx.x)) * kColumns;
}

// A thread's columns of kRows rows.
template <typename T, int kRows, int kColumns>
struct Rows {
  static constexpr int kSteps = kThreadColumns / kColumns;
  Pack<T, kColumns> y[kSteps][kRows];
  Pack<float, kColumns> x[kSteps][kRows];

  template <typename Out>
  __device__ void load(const Residual<T, Out>& target, std::int64_t y_stride, std::int64_t first) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int column = column_of<kColumns>(step);
      if (column >= target.width) break;
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const std::int64_t row = min(first + i, target.n_rows - 1);
        y[step][i] = load_pack<T, kColumns>(target.y + row * y_stride + column);
        x[step][i] = load_pack<float, kColumns>(target.x + row * target.width + column);
      }
    }
  }
};

template <typename T, typename Out, int kRows, int kColumns, bool kShared>
__global__ void __launch_bounds__(kThreads)
    residual_kernel(LowRank<T> update, Residual<T, Out> target) {
  constexpr int kSteps = kThreadColumns / kColumns;
  extern __shared__ float4 shared[];
  __shared__ float partial[kThreads / 32];
  float* low = reinterpret_cast<float*>(shared);  // [rank, kRows]
  const T* b = update.b;
  std::int64_t b_stride = update.b_stride;
  if constexpr (kShared) {
    T* copy = reinterpret_cast<T*>(low + (kRows * update.rank + 3) / 4 * 4);
    for (int j = 0; j < update.rank; ++j) {
      copy_row(b + j * b_stride, target.width, copy + j * target.width, target.width,
               static_cast<int>(threadIdx.x), kThreads);
    }
    commit_copies();
    b = copy, b_stride = target.width;
  }
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kRows;
  std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kRows;
  Rows<T, kRows, kColumns> next = {};
  next.load(target, update.stride, first);
  for (; first < target.n_rows; first += stride) {
    for (int i = static_cast<int>(threadIdx.x); i < kRows * update.rank; i += kThreads) {
      const std::int64_t row = min(first + i % kRows, target.n_rows - 1);
      low[i] = to_float(update.low[row * update.stride + i / kRows]);
    }
    Rows<T, kRows, kColumns> rows = next;
    if (first + stride < target.n_rows) next.load(target, update.stride, first + stride);
    wait_copies<0>();
    __syncthreads();

    float squares[kRows] = {};
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int column = column_of<kColumns>(step);
      if (column >= target.width) break;
      float sums[kRows][kColumns] = {};
#pragma unroll 8
      for (int j = 0; j < update.rank; ++j) {
        const auto factors = load_pack<T, kColumns>(b + j * b_stride + column);
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          const float factor = to_float(factors.at[c]);
#pragma unroll
          for (int i = 0; i < kRows; ++i) sums[i][c] += low[j * kRows + i] * factor;
        }
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        auto& x = rows.x[step][i];
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          x.at[c] += to_float(rows.y[step][i].at[c]) + sums[i][c];
          squares[i] += x.at[c] * x.at[c];
        }
        if (first + i < target.n_rows)
          store_pack(target.x + (first + i) * target.width + column, x);
      }
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const float sum = block_sum<kThreads>(squares[i], partial);  // all are done with low
      squares[i] = 1.0f / sqrtf(sum / static_cast<float>(target.width) + target.eps);
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int column = column_of<kColumns>(step);
      if (column >= target.width) break;
      const auto factor = load_pack<float, kColumns>(target.factor + column);
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        Pack<Out, kColumns> normed;
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          normed.at[c] = from_float<Out>(rows.x[step][i].at[c] * squares[i] * factor.at[c]);
        }
        if (first + i < target.n_rows) {
          store_pack(target.normed + (first + i) * target.width + column, normed);
        }
      }
    }
  }
}

struct Limits {
  int n_multiprocessors = 0, shared_bytes = 0;
};
const Limits& device_limits() {
  static PerDevice<Limits> limits;
  const int device = current_device();
  return limits.get(device, [device] {
    Limits l;
    cuda_check(cudaDeviceGetAttribute(&l.n_multiprocessors, cudaDevAttrMultiProcessorCount, device),
               "asking for the multiprocessors");
    cuda_check(
        cudaDeviceGetAttribute(&l.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
        "asking for the shared memory");
    return l;
  });
}

template <int kRows, int kColumns, bool kShared, typename T, typename Out>
void launch(const LowRank<T>& update, const Residual<T, Out>& target, std::int64_t shared,
            StreamHandle stream) {
  auto* kernel = &residual_kernel<T, Out, kRows, kColumns, kShared>;
  if (shared > 47 * 1024) allow_shared(kernel, static_cast<std::size_t>(shared), "add_residual");
  const std::int64_t blocks = std::min<std::int64_t>(device_limits().n_multiprocessors,
                                                     (target.n_rows + kRows - 1) / kRows);
  kernel<<<static_cast<unsigned>(blocks), kThreads, static_cast<std::size_t>(shared), stream>>>(
      update, target);
  check_launch("add_residual");
}

template <int kRows, typename T, typename Out>
void launch_rows(const LowRank<T>& update, const Residual<T, Out>& target, StreamHandle stream) {
  const std::int64_t most = device_limits().shared_bytes - 1024;  // some of it is static
  const std::int64_t low_bytes = (kRows * update.rank + 3) / 4 * 16;
  const std::int64_t b_bytes = static_cast<std::int64_t>(sizeof(T)) * update.rank * target.width;
  check_limit("low-rank inputs in bytes", low_bytes, most);
  check_limit("a hidden size", target.width, kThreads * kThreadColumns);
  const auto in_fours = [](auto... n) { return ((n % 4 == 0) && ...); };
  if (!in_fours(target.width, update.stride, update.b_stride)) {
    launch<kRows, 1, false>(update, target, low_bytes, stream);
  } else if (target.width % 8 == 0 && low_bytes + b_bytes <= most) {
    launch<kRows, 4, true>(update, target, low_bytes + b_bytes, stream);
  } else {
    launch<kRows, 4, false>(update, target, low_bytes, stream);
  }
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
  if (n_rows > 2 * device_limits().n_multiprocessors) {
    launch_rows<2>(update, target, stream);
  } else {
    launch_rows<1>(update, target, stream);
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

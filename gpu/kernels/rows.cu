// Kernels that take rows one by one: embedding, gathering, norm, label logits.
//
// Bound by the bytes of the rows, each read once and written once; for few rows by the time until
// the first bytes come, so a thread asks for all it needs before it uses any.
#include <algorithm>

#include "gpu/cuda.h"
#include "gpu/kernels/device.cuh"
#include "gpu/kernels/kernels.h"

namespace jemm::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int kGatherThreads = 128;
constexpr int kGatherColumns = 8;  // of a thread, where the widths allow it

// Grid: rows, and the blocks that one takes.
template <int kColumns, typename From, typename To>
__global__ void __launch_bounds__(kGatherThreads)
    gather_kernel(const From* from, std::int64_t from_stride, const std::int32_t* indices,
                  int width, To* to) {
  const int column = static_cast<int>(blockIdx.y * kGatherThreads + threadIdx.x) * kColumns;
  if (column >= width) return;
  const auto values = load_pack<From, kColumns>(from + indices[blockIdx.x] * from_stride + column);
  Pack<To, kColumns> out;
#pragma unroll
  for (int i = 0; i < kColumns; ++i) out.at[i] = from_float<To>(to_float(values.at[i]));
  store_pack(to + static_cast<std::int64_t>(blockIdx.x) * width + column, out);
}

// A block a row. The first kHeld kThreads columns stay in registers between sum and norm.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    rms_norm_kernel(const float* x, const float* factor, float eps, int width, T* y) {
  constexpr int kHeld = 20;
  __shared__ float shared[kThreads / 32];
  const auto thread = static_cast<int>(threadIdx.x);
  const float* row = x + static_cast<std::int64_t>(blockIdx.x) * width;
  T* out = y + static_cast<std::int64_t>(blockIdx.x) * width;
  float held[kHeld], factors[kHeld];
#pragma unroll
  for (int j = 0; j < kHeld; ++j) {
    const int i = j * kThreads + thread;
    held[j] = i < width ? row[i] : 0.0f;
    factors[j] = i < width ? factor[i] : 0.0f;
  }
  float sum = 0;
#pragma unroll
  for (int j = 0; j < kHeld; ++j) sum += held[j] * held[j];
  for (int i = kHeld * kThreads + thread; i < width; i += kThreads) sum += row[i] * row[i];
  sum = block_sum<kThreads>(sum, shared);
  const float inverse = 1.0f / sqrtf(sum / static_cast<float>(width) + eps);
#pragma unroll
  for (int j = 0; j < kHeld; ++j) {
    const int i = j * kThreads + thread;
    if (i < width) out[i] = from_float<T>(held[j] * inverse * factors[j]);
  }
  for (int i = kHeld * kThreads + thread; i < width; i += kThreads) {
    out[i] = from_float<T>(row[i] * inverse * factor[i]);
  }
}

// A block a label of a row: block 32 row + label.
template <int kColumns>
__global__ void __launch_bounds__(kThreads)
    label_logits_kernel(const float* x, const float* head, int width, float* logits) {
  __shared__ float shared[kThreads / 32];
  const float* row = x + static_cast<std::int64_t>(blockIdx.x / 32) * width;
  const float* label = head + static_cast<std::int64_t>(blockIdx.x % 32) * width;
  float sum = 0;
#pragma unroll 5
  for (int i = static_cast<int>(threadIdx.x) * kColumns; i < width; i += kThreads * kColumns) {
    const auto a = load_pack<float, kColumns>(row + i), b = load_pack<float, kColumns>(label + i);
#pragma unroll
    for (int j = 0; j < kColumns; ++j) sum += a.at[j] * b.at[j];
  }
  sum = block_sum<kThreads>(sum, shared);
  if (threadIdx.x == 0) logits[blockIdx.x] = sum;
}

template <int kColumns, typename From, typename To>
void launch_gather(const From* from, std::int64_t from_stride, const std::int32_t* indices,
                   std::int64_t n, std::int64_t width, To* to, StreamHandle stream) {
  constexpr std::int64_t kBlock = std::int64_t{kGatherThreads} * kColumns;
  const dim3 grid(static_cast<unsigned>(n), static_cast<unsigned>((width + kBlock - 1) / kBlock));
  gather_kernel<kColumns><<<grid, kGatherThreads, 0, stream>>>(from, from_stride, indices,
                                                               static_cast<int>(width), to);
}

template <typename From, typename To>
void gather(const From* from, std::int64_t from_stride, const std::int32_t* indices, std::int64_t n,
            std::int64_t width, To* to, StreamHandle stream) {
  if (n == 0) return;
  if (width % kGatherColumns == 0 && from_stride % kGatherColumns == 0) {
    launch_gather<kGatherColumns>(from, from_stride, indices, n, width, to, stream);
  } else {
    launch_gather<1>(from, from_stride, indices, n, width, to, stream);
  }
  check_launch("gather_rows");
}

}  // namespace

template <typename T>
void embed(const T* table, const std::int32_t* token_ids, std::int64_t n_rows, std::int64_t width,
           float* x, StreamHandle stream) {
  gather(table, width, token_ids, n_rows, width, x, stream);
}

template <typename T>
void gather_rows(const T* from, std::int64_t from_stride, const std::int32_t* indices,
                 std::int64_t n, std::int64_t width, T* to, StreamHandle stream) {
  gather(from, from_stride, indices, n, width, to, stream);
}

template <typename T>
void rms_norm(const float* x, const float* factor, float eps, std::int64_t n_rows,
              std::int64_t width, T* y, StreamHandle stream) {
  if (n_rows == 0) return;
  rms_norm_kernel<<<static_cast<unsigned>(n_rows), kThreads, 0, stream>>>(
      x, factor, eps, static_cast<int>(width), y);
  check_launch("rms_norm");
}

void label_logits(const float* x, const float* head, std::int64_t n_rows, std::int64_t width,
                  float* logits, StreamHandle stream) {
  if (n_rows == 0) return;
  const auto kernel = width % 4 == 0 ? label_logits_kernel<4> : label_logits_kernel<1>;
  kernel<<<static_cast<unsigned>(n_rows * 32), kThreads, 0, stream>>>(
      x, head, static_cast<int>(width), logits);
  check_launch("label_logits");
}

#define JEMM_INSTANTIATE(T)                                                                 \
  template void embed(const T*, const std::int32_t*, std::int64_t, std::int64_t, float*,    \
                      StreamHandle);                                                        \
  template void gather_rows(const T*, std::int64_t, const std::int32_t*, std::int64_t,      \
                            std::int64_t, T*, StreamHandle);                                \
  template void rms_norm(const float*, const float*, float, std::int64_t, std::int64_t, T*, \
                         StreamHandle);
JEMM_INSTANTIATE(float)
JEMM_INSTANTIATE(__nv_bfloat16)
#undef JEMM_INSTANTIATE

}  // namespace jemm::gpu

// Kernels that take rows one by one: embedding, gathering, norm, label logits.
//
// One block a row; bound by the bytes of the rows, each read once and written once.
#include <algorithm>

#include "gpu/cuda.h"
#include "gpu/kernels/device.cuh"
#include "gpu/kernels/kernels.h"

namespace jemm::gpu {
namespace {

constexpr int kThreads = 256;

template <typename From, typename To>
__global__ void gather_kernel(const From* from, std::int64_t from_stride,
                              const std::int32_t* indices, int width, To* to) {
  const std::int64_t row = indices == nullptr ? blockIdx.x : indices[blockIdx.x];
  const From* source = from + row * from_stride;
  To* target = to + static_cast<std::int64_t>(blockIdx.x) * width;
  for (int i = static_cast<int>(threadIdx.x); i < width; i += kThreads) {
    target[i] = from_float<To>(to_float(source[i]));
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    rms_norm_kernel(const float* x, const float* factor, float eps, int width, T* y) {
  __shared__ float shared[kThreads / 32];
  const float* row = x + static_cast<std::int64_t>(blockIdx.x) * width;
  T* out = y + static_cast<std::int64_t>(blockIdx.x) * width;
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < width; i += kThreads) {
    const float v = row[i];
    sum += v * v;
  }
  sum = block_sum<kThreads>(sum, shared);
  const float inverse = 1.0f / sqrtf(sum / static_cast<float>(width) + eps);
  for (int i = static_cast<int>(threadIdx.x); i < width; i += kThreads) {
    out[i] = from_float<T>(row[i] * inverse * factor[i]);
  }
}

// A warp computes 32 / (kThreads / 32) = 4 labels of the block's row.
__global__ void label_logits_kernel(const float* x, const float* head, int width, float* logits) {
  constexpr int kEach = 32 / (kThreads / 32);
  const float* row = x + static_cast<std::int64_t>(blockIdx.x) * width;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  float sums[kEach] = {};
  for (int i = lane; i < width; i += 32) {
    const float v = row[i];
    for (int j = 0; j < kEach; ++j) {
      sums[j] += v * head[static_cast<std::int64_t>(warp * kEach + j) * width + i];
    }
  }
  for (int j = 0; j < kEach; ++j) {
    const float sum = warp_sum(sums[j]);
    if (lane == 0) logits[blockIdx.x * 32 + warp * kEach + j] = sum;
  }
}

template <typename From, typename To>
void gather(const From* from, std::int64_t from_stride, const std::int32_t* indices, std::int64_t n,
            std::int64_t width, To* to, StreamHandle stream) {
  if (n == 0) return;
  gather_kernel<<<static_cast<unsigned>(n), kThreads, 0, stream>>>(from, from_stride, indices,
                                                                   static_cast<int>(width), to);
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
  label_logits_kernel<<<static_cast<unsigned>(n_rows), kThreads, 0, stream>>>(
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

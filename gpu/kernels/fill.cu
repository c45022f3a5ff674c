// Weights: widened, rounded, or made from their index; the cache. One thread an element,
// grid-stride.
#include "gpu/kernels/fill.h"

#include <cuda_fp16.h>

#include <algorithm>

#include "gpu/cuda.h"
#include "gpu/kernels/device.cuh"

namespace jemm::gpu {
namespace {

constexpr int kThreads = 256;

int blocks_for(std::int64_t n) {
  return static_cast<int>(std::min<std::int64_t>((n + kThreads - 1) / kThreads, 132 * 64));
}

template <typename From>
__device__ float widen(From x) {
  if constexpr (sizeof(From) == 4) {
    return x;
  } else {
    return static_cast<float>(x);
  }
}

template <typename From, typename T>
__global__ void convert_kernel(const From* from, std::int64_t n, T* to) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n;
       i += step) {
    to[i] = from_float<T>(widen(from[i]));
  }
}

// As synthetic_mix of the checkpoint room, which the host alone can call.
__device__ std::uint32_t mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  return x ^ (x >> 16);
}

// Products and sums are rounded one by one, as the host's.
template <typename T>
__global__ void fill_by_formula_kernel(FormulaFill fill, std::int64_t n, T* to) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n;
       i += step) {
    const auto index = static_cast<std::uint64_t>(fill.first + i);
    const std::uint32_t lead = mix(fill.name_hash + static_cast<std::uint32_t>(index >> 32));
    const double u = mix(static_cast<std::uint32_t>(index) ^ lead) * 0x1p-32;
    const double v = __dadd_rn(2 * u, -1.0);
    const double value = __dadd_rn(fill.centre, __dmul_rn(v, fill.width));
    to[i] = from_float<T>(rounded<__nv_bfloat16>(static_cast<float>(value)));
  }
}

__global__ void read_through_kernel(uint4* p, std::int64_t n) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  std::uint32_t sum = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n;
       i += step) {
    const uint4 v = p[i];
    sum += v.x ^ v.y ^ v.z ^ v.w;
  }
  if (sum == 0x9e3779b9U) p->x = sum;  // so that the reads are not left out
}

}  // namespace

template <typename T>
void convert(const void* from, StoredType type, std::int64_t n, T* to, StreamHandle stream) {
  if (n == 0) return;
  const int blocks = blocks_for(n);
  switch (type) {
    case StoredType::kBf16:
      convert_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<const __nv_bfloat16*>(from), n,
                                                      to);
      break;
    case StoredType::kF16:
      convert_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<const __half*>(from), n, to);
      break;
    case StoredType::kF32:
      convert_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<const float*>(from), n, to);
      break;
  }
  check_launch("convert");
}
template void convert(const void*, StoredType, std::int64_t, float*, StreamHandle);
template void convert(const void*, StoredType, std::int64_t, __nv_bfloat16*, StreamHandle);

template <typename T>
void fill_by_formula(const FormulaFill& fill, std::int64_t n, T* to, StreamHandle stream) {
  if (n == 0) return;
  fill_by_formula_kernel<<<blocks_for(n), kThreads, 0, stream>>>(fill, n, to);
  check_launch("fill_by_formula");
}
template void fill_by_formula(const FormulaFill&, std::int64_t, float*, StreamHandle);
template void fill_by_formula(const FormulaFill&, std::int64_t, __nv_bfloat16*, StreamHandle);

void read_through(void* p, std::int64_t n_bytes, StreamHandle stream) {
  const std::int64_t n = n_bytes / static_cast<std::int64_t>(sizeof(uint4));
  if (n == 0) return;
  read_through_kernel<<<blocks_for(n), kThreads, 0, stream>>>(static_cast<uint4*>(p), n);
  check_launch("read_through");
}

}  // namespace jemm::gpu

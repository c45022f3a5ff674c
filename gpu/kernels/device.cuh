// Conversions and reductions that kernels share. Device code only.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace jemm::gpu {

__device__ inline float to_float(float x) {
  return x;
}
__device__ inline float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}

template <typename T>
__device__ inline T from_float(float x);
template <>
__device__ inline float from_float<float>(float x) {
  return x;
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

/// x as a stored T reads it back.
template <typename T>
__device__ inline float rounded(float x) {
  return to_float(from_float<T>(x));
}

__device__ inline float warp_sum(float x) {
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(0xffffffffU, x, offset);
  return x;
}

/// The sum over a block of kThreads, in every thread; `shared` holds kThreads / 32 floats.
template <int kThreads>
__device__ inline float block_sum(float x, float* shared) {
  x = warp_sum(x);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < kThreads / 32; ++i) sum += shared[i];
  __syncthreads();
  return sum;
}

/// Two neighbours, moved at once; p is aligned for both.
__device__ inline float2 load_pair(const float* p) {
  return *reinterpret_cast<const float2*>(p);
}
__device__ inline float2 load_pair(const __nv_bfloat16* p) {
  return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(p));
}
__device__ inline void store_pair(float* p, float2 x) {
  *reinterpret_cast<float2*>(p) = x;
}
__device__ inline void store_pair(__nv_bfloat16* p, float2 x) {
  *reinterpret_cast<__nv_bfloat162*>(p) = __float22bfloat162_rn(x);
}

/// kN elements that are moved at once, 16 bytes an access at the most; their address is a multiple
/// of an access.
template <typename T, int kN>
struct alignas(sizeof(T) * kN < 16 ? sizeof(T) * kN : 16) Pack {
  T at[kN];
};

/// Elements of a 16-byte access.
template <typename T>
inline constexpr int kWide = static_cast<int>(16 / sizeof(T));

template <typename T, int kN>
__device__ Pack<T, kN> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, kN>*>(from);
}

template <typename T, int kN>
__device__ void store_pack(T* to, const Pack<T, kN>& pack) {
  *reinterpret_cast<Pack<T, kN>*>(to) = pack;
}

__device__ inline float sigmoid(float x) {
  return 1.0f / (1.0f + expf(-x));
}
__device__ inline float silu(float x) {
  return x / (1.0f + expf(-x));
}
/// silu to the precision of a T. BF16: with the device's quick instructions, without their cases
/// for subnormal numbers.
template <typename T>
__device__ inline float silu_for(float x) {
  if constexpr (sizeof(T) != 2) return silu(x);
  float power, inverse;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(-1.44269504f * x));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(1.0f + power));
  return x * inverse;
}

}  // namespace jemm::gpu

// What the vision kernels share: conversion of elements, and several of them in one access.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>

#include "gpu/cuda.h"

namespace jemm::gpu {

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

/// Rounded to nearest, ties to even.
template <typename T>
__device__ T from_float(float x) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return x;
  } else {
    return __float2bfloat16_rn(x);
  }
}

/// The sum over a warp, the same bits in every lane.
__device__ inline float warp_sum(float x) {
  for (int lane = 16; lane > 0; lane /= 2) x += __shfl_xor_sync(0xffffffffu, x, lane);
  return x;
}

/// kN elements that are read and written in one access; their address is a multiple of its size.
template <typename T, int kN>
struct alignas(sizeof(T) * kN) Pack {
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

inline unsigned blocks_for(std::int64_t n, std::int64_t block) {
  return static_cast<unsigned>((n + block - 1) / block);
}

}  // namespace jemm::gpu

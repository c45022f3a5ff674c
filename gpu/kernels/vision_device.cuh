// What the vision kernels share: several elements in one access.
#pragma once

#include <cstdint>

#include "gpu/cuda.h"
#include "gpu/kernels/device.cuh"

namespace jemm::gpu {

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

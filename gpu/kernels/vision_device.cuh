// What the vision kernels share.
#pragma once

#include <cstdint>

#include "gpu/cuda.h"
#include "gpu/kernels/device.cuh"

namespace jemm::gpu {

inline unsigned blocks_for(std::int64_t n, std::int64_t block) {
  return static_cast<unsigned>((n + block - 1) / block);
}

}  // namespace jemm::gpu

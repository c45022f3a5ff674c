// What every kernel's header shares: the stream's handle and the BF16 type, without CUDA's headers.
#pragma once

#include <cstdint>

struct CUstream_st;
struct __nv_bfloat16;

namespace jemm::gpu {

using StreamHandle = CUstream_st*;

}  // namespace jemm::gpu

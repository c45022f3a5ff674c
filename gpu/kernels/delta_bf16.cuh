// Tiles of BF16 on their way between global memory, shared memory and the registers of
// mma.m16n8k16. Device code.
//
// A tile of accumulators lies as in tile_product.cuh; two that stand side by side, rounded, are the
// left operand of a product over their 16 columns, register by register.
#pragma once

#include <cstdint>

#include "gpu/kernels/delta_rule.cuh"
#include "gpu/kernels/tile_product.cuh"

namespace jemm::gpu::delta {

using bf16 = __nv_bfloat16;

__device__ inline float2 unpack(std::uint32_t pair) {
  return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&pair));
}

// An 8 x 8 matrix, of which a lane holds two neighbours of row lane / 4, turned.
__device__ inline std::uint32_t turned(std::uint32_t pair) {
  std::uint32_t to;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(to) : "r"(pair));
  return to;
}

// Left operand [16, 16] out of two tiles of accumulators.
struct Operand {
  __device__ Operand(const float (&left)[4], const float (&right)[4])
      : r{pack_pair(left[0], left[1]), pack_pair(left[2], left[3]), pack_pair(right[0], right[1]),
          pack_pair(right[2], right[3])} {}
  std::uint32_t r[4];
};

// What a lane adds to the address of a right operand's 16 x 16 corner.
template <Fast kFast>
__device__ inline int lane_offset(int stride) {
  const int i = static_cast<int>(threadIdx.x) % 32;
  return kFast == Fast::kSum ? (i / 16 * 8 + i % 8) * stride + i / 8 % 2 * 8
                             : i % 16 * stride + i / 16 * 8;
}

// left | right [16, 8 | 8] += a b over 16 terms; `b` has the lane's offset in it.
template <Fast kFast>
__device__ inline void multiply(float (&left)[4], float (&right)[4], const std::uint32_t (&a)[4],
                                const bf16* b) {
  std::uint32_t r[4];
  if constexpr (kFast == Fast::kSum) {
    load_matrices(r, b);
  } else {
    load_matrices_transposed(r, b);
  }
  mma_bf16(left, a, r[0], r[1]);
  mma_bf16(right, a, r[2], r[3]);
}

// Whether rows from `from` on are whole vectors of 16 bytes.
__device__ inline bool is_aligned(const bf16* from, int stride, int width) {
  return reinterpret_cast<std::uintptr_t>(from) % 16 == 0 && stride % 8 == 0 && width % 8 == 0;
}

// [64, kWidth] to shared memory by kCopiers threads, in the background where rows are aligned;
// zeros behind n_rows and `width`.
template <int kWidth, int kCopiers>
__device__ inline void copy_tile(const bf16* from, int stride, int n_rows, int width, bf16* to,
                                 int to_stride, int thread) {
  constexpr int kPerRow = kWidth / 8, kStep = kCopiers / kPerRow;
  const int row = thread / kPerRow, column = thread % kPerRow * 8;
  const int end = column < width ? n_rows : 0;  // rows from here on are zeros
  to += row * to_stride + column;
  if (is_aligned(from, stride, width)) {
    from += row * stride + column;
    const std::uint32_t target = shared_address(to);
#pragma unroll
    for (int i = 0; i < kChunk; i += kStep) {
      copy_16_unless(row + i >= end, target + 2 * i * to_stride, from + i * stride);
    }
    return;
  }
#pragma unroll 1
  for (int i = 0; i < kChunk; i += kStep) {
#pragma unroll 1
    for (int j = 0; j < 8; ++j) {
      to[i * to_stride + j] = row + i < end && column + j < width
                                  ? from[(row + i) * stride + column + j]
                                  : from_float<bf16>(0.0f);
    }
  }
}

// A warp's [kRows, kWidth] in shared memory to global memory: rows below n_rows, columns below
// `width`.
template <int kRows, int kWidth>
__device__ inline void store_tile(const bf16* from, int from_stride, int n_rows, int width,
                                  bf16* to, int stride) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (is_aligned(to, stride, width)) {
    constexpr int kPerRow = kWidth / 8;
    const int row = lane / kPerRow, column = lane % kPerRow * 8;
    if (column >= width) return;
    from += row * from_stride + column;
    to += column;
#pragma unroll
    for (int i = 0; i < kRows; i += 32 / kPerRow) {
      if (row + i < n_rows) {
        *reinterpret_cast<uint4*>(to + (row + i) * stride) =
            *reinterpret_cast<const uint4*>(from + i * from_stride);
      }
    }
    return;
  }
#pragma unroll 1
  for (int i = lane; i < kRows * kWidth; i += 32) {
    const int row = i / kWidth, column = i % kWidth;
    if (row < n_rows && column < width) {
      to[row * stride + column] = from[row * from_stride + column];
    }
  }
}

}  // namespace jemm::gpu::delta

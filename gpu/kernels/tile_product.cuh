// A warp's product of two tiles in shared memory, 16 rows by 8 kTiles columns, in three
// arithmetics.
//
// The accumulators lie as mma.m16n8 has them whatever the arithmetic: lane 4 g + t holds of tile n
//   acc[n][0], acc[n][1]: row g,     columns 8 n + 2 t and the next
//   acc[n][2], acc[n][3]: row g + 8, the same columns
// Sums are FP32, in the order of k (in groups of 8 or 16 within the matrix unit).
// Without bank conflicts when the strides, in words of 4 bytes, are 4 mod 32 where k is the fast
// index and 8 mod 32 where it is the slow one.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "gpu/kernels/device.cuh"
#include "gpu/kernels/mma.cuh"

namespace jemm::gpu {

struct Fp32Math {};  ///< plain multiply-adds; floats
struct Tf32Math {};  ///< matrix unit, operands rounded to 10 bits; floats
struct Bf16Math {};  ///< matrix unit; BF16

/// Which index of the operand runs fastest in memory.
enum class Fast { kSum, kOuter };

struct Lane {
  int g = static_cast<int>(threadIdx.x) % 32 / 4;
  int t = static_cast<int>(threadIdx.x) % 4;
};

__device__ inline std::uint32_t to_tf32(float x) {
  std::uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return bits;
}

__device__ inline void mma_tf32(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <Fast kFast>
__device__ inline int at(int outer, int k, int stride) {
  return kFast == Fast::kSum ? outer * stride + k : k * stride + outer;
}

/// acc += A B. `a` and `b` point at the tile's first element; strides in elements.
template <typename Math, Fast kFastA, Fast kFastB, int kTiles, int kSum>
struct TileProduct;

template <Fast kFastA, Fast kFastB, int kTiles, int kSum>
struct TileProduct<Fp32Math, kFastA, kFastB, kTiles, kSum> {
  __device__ static void run(float (&acc)[kTiles][4], const float* a, int a_stride, const float* b,
                             int b_stride) {
    const Lane lane;
#pragma unroll 2
    for (int k = 0; k < kSum; ++k) {
      const float a0 = a[at<kFastA>(lane.g, k, a_stride)];
      const float a1 = a[at<kFastA>(lane.g + 8, k, a_stride)];
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
        const float b0 = b[at<kFastB>(8 * n + 2 * lane.t, k, b_stride)];
        const float b1 = b[at<kFastB>(8 * n + 2 * lane.t + 1, k, b_stride)];
        acc[n][0] += a0 * b0;
        acc[n][1] += a0 * b1;
        acc[n][2] += a1 * b0;
        acc[n][3] += a1 * b1;
      }
    }
  }
};

template <Fast kFastA, Fast kFastB, int kTiles, int kSum>
struct TileProduct<Tf32Math, kFastA, kFastB, kTiles, kSum> {
  __device__ static void run(float (&acc)[kTiles][4], const float* a, int a_stride, const float* b,
                             int b_stride) {
    const Lane lane;
#pragma unroll 4
    for (int k = 0; k < kSum; k += 8) {
      const std::uint32_t fragment[4] = {
          to_tf32(a[at<kFastA>(lane.g, k + lane.t, a_stride)]),
          to_tf32(a[at<kFastA>(lane.g + 8, k + lane.t, a_stride)]),
          to_tf32(a[at<kFastA>(lane.g, k + lane.t + 4, a_stride)]),
          to_tf32(a[at<kFastA>(lane.g + 8, k + lane.t + 4, a_stride)])};
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
        const std::uint32_t b0 = to_tf32(b[at<kFastB>(8 * n + lane.g, k + lane.t, b_stride)]);
        const std::uint32_t b1 = to_tf32(b[at<kFastB>(8 * n + lane.g, k + lane.t + 4, b_stride)]);
        mma_tf32(acc[n], fragment, b0, b1);
      }
    }
  }
};

/// A must be stored along the sum. Rows start at multiples of 16 bytes.
template <Fast kFastB, int kTiles, int kSum>
struct TileProduct<Bf16Math, Fast::kSum, kFastB, kTiles, kSum> {
  __device__ static void run(float (&acc)[kTiles][4], const __nv_bfloat16* a, int a_stride,
                             const __nv_bfloat16* b, int b_stride) {
    static_assert(kTiles % 2 == 0);
    const int i = static_cast<int>(threadIdx.x) % 32;
    const __nv_bfloat16* a_row = a + i % 16 * a_stride + i / 16 * 8;
    const __nv_bfloat16* b_row = kFastB == Fast::kSum
                                     ? b + (i / 16 * 8 + i % 8) * b_stride + i / 8 % 2 * 8
                                     : b + i % 16 * b_stride + i / 16 * 8;
#pragma unroll 2
    for (int k = 0; k < kSum; k += 16) {
      std::uint32_t fragment[4];
      load_matrices(fragment, a_row + k);
#pragma unroll
      for (int n = 0; n < kTiles; n += 2) {
        std::uint32_t r[4];
        if constexpr (kFastB == Fast::kSum) {
          load_matrices(r, b_row + 8 * n * b_stride + k);
        } else {
          load_matrices_transposed(r, b_row + k * b_stride + 8 * n);
        }
        mma_bf16(acc[n], fragment, r[0], r[1]);
        mma_bf16(acc[n + 1], fragment, r[2], r[3]);
      }
    }
  }
};

/// to[0..count) = from[..valid), zeros behind, by threads `first`, first + step, ...: copied in the
/// background, 16 bytes at a time, where `from` is aligned for that; else at once. count is a
/// multiple of 8.
template <typename T>
__device__ inline void copy_row(const T* from, int valid, T* to, int count, int first, int step) {
  constexpr int kVector = 16 / sizeof(T);
  const bool aligned = reinterpret_cast<std::uintptr_t>(from) % 16 == 0;
  for (int i = first * kVector; i < count; i += step * kVector) {
    if (aligned) {
      const int n_bytes = min(max(valid - i, 0), kVector) * static_cast<int>(sizeof(T));
      copy_16(to + i, n_bytes > 0 ? from + i : from, n_bytes);
    } else {
      for (int j = 0; j < kVector; ++j) {
        to[i + j] = i + j < valid ? from[i + j] : from_float<T>(0.0f);
      }
    }
  }
}

}  // namespace jemm::gpu

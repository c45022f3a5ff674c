// One warp's matrix instructions, copies in the background and quick exponentials, as of sm_80.
// Device code only.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace jemm::gpu {

__device__ inline std::uint32_t shared_address(const void* at) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(at));
}

/// Copies 16 bytes to shared memory in the background, the first n_bytes of them from `from`, zeros
/// behind; `from` must be a valid address even if nothing is read.
__device__ inline void copy_16(void* to, const void* from, int n_bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(n_bytes)
               : "memory");
}
/// The same with 16 bytes or 16 zeros; `to` is a shared_address.
__device__ inline void copy_16_unless(bool is_zero, std::uint32_t to, const void* from) {
  asm volatile(
      "{\n"
      ".reg .pred zero;\n"
      "setp.ne.b32 zero, %2, 0;\n"
      "cp.async.cg.shared.global [%0], [%1], 16, zero;\n"
      "}" ::"r"(to),
      "l"(from), "r"(static_cast<int>(is_zero))
      : "memory");
}
/// Ends a group of this thread's copies.
__device__ inline void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Waits until at most kUnderWay groups of this thread's copies are under way.
template <int kUnderWay>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kUnderWay) : "memory");
}

/// Four 8 x 8 matrices of 16-bit values. Lane l names row l % 8 of matrix l / 8 and gets, of every
/// matrix, row l / 4, columns 2 (l % 4) and the next.
__device__ inline void load_matrices(std::uint32_t (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row))
               : "memory");
}
/// The same, each matrix transposed.
__device__ inline void load_matrices_transposed(std::uint32_t (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row))
               : "memory");
}

/// c [16, 8] += a [16, 16] b [16, 8]. Lane l: a is rows l / 4 and 8 more, columns 2 (l % 4), its
/// next and 8 more (a[1] is the lower rows, a[2] the right columns); b is rows 2 (l % 4), its next
/// and 8 more of column l / 4; c is rows l / 4 (c[0], c[1]) and 8 more, columns 2 (l % 4), next.
__device__ inline void mma_bf16(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Two values as BF16 in one register, the first in the low half.
__device__ inline std::uint32_t pack_pair(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

/// 2^x, within 2 units in the last place; 0 for minus infinity.
__device__ inline float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// 1 / x, within a unit in the last place; 0 for infinity.
__device__ inline float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace jemm::gpu

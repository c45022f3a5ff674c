// Products of a warpgroup (4 warps, the first a multiple of 4) on the matrix unit of sm_90a, and
// the barriers in shared memory by which one warpgroup feeds another.
//
// Operands in shared memory are slabs [rows][64] of BF16, one behind another for the next 64
// columns, each beginning at a multiple of 1,024 bytes; the 16-byte pieces of a row are permuted
// (slab_piece) so that neither the copies nor the matrix unit meet bank conflicts. Accumulators
// [columns / 8][4]: lane 4 g + t of warp w holds of 8 columns n
//   acc[n][0], acc[n][1]: row 16 w + g, columns 8 n + 2 t and the next
//   acc[n][2], acc[n][3]: row 16 w + g + 8, the same columns
// Products run in the background: fence_products() before the first and after registers were
// written; commit_products() ends a group; wait_products<n>() waits until n groups are under way.
// Until then neither the accumulators nor the operands may be touched.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "gpu/kernels/mma.cuh"

// Device code of other architectures is compiled without a body where it needs these instructions.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define JEMM_HAS_WGMMA 1
#endif

namespace jemm::gpu {

constexpr int kSlabColumns = 64;
constexpr int kSlabRowBytes = 128;

/// Byte offset of the 16 bytes `piece` (0..7) of a slab's row.
__device__ inline int slab_piece(int row, int piece) {
  return row * kSlabRowBytes + (piece ^ (row & 7)) * 16;
}

/// What names an operand in shared memory: its first row and column, both multiples of 8, and the
/// bytes from a slab to the next (of use only where columns are the outer index).
__device__ inline std::uint64_t slab_operand(const void* at, int slab_bytes) {
  constexpr std::uint64_t kEightRows = 8 * kSlabRowBytes / 16, kSwizzle128 = 1;
  return (shared_address(at) & 0x3ffffU) >> 4 | static_cast<std::uint64_t>(slab_bytes / 16) << 16 |
         kEightRows << 32 | kSwizzle128 << 62;
}
/// The operand so many bytes on.
__device__ inline std::uint64_t moved(std::uint64_t operand, int bytes) {
  return operand + static_cast<std::uint64_t>(bytes / 16);
}

#ifdef JEMM_HAS_WGMMA

__device__ inline void fence_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kUnderWay>
__device__ inline void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kUnderWay) : "memory");
}
/// Keeps the compiler from moving uses of accumulators across a wait.
template <int kTiles>
__device__ inline void pin(float (&acc)[kTiles][4]) {
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
    asm volatile("" : "+f"(acc[n][0]), "+f"(acc[n][1]), "+f"(acc[n][2]), "+f"(acc[n][3])::"memory");
  }
}

#define JEMM_ACC(c, n)                                                           \
  "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3]), "+f"(c[n + 1][0]), \
      "+f"(c[n + 1][1]), "+f"(c[n + 1][2]), "+f"(c[n + 1][3])
#define JEMM_ACC_64(c)                                                                             \
  JEMM_ACC(c, 0), JEMM_ACC(c, 2), JEMM_ACC(c, 4), JEMM_ACC(c, 6), JEMM_ACC(c, 8), JEMM_ACC(c, 10), \
      JEMM_ACC(c, 12), JEMM_ACC(c, 14)
#define JEMM_NAMES_32                                                                          \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
  "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define JEMM_NAMES_36 JEMM_NAMES_32 ", %32, %33, %34, %35"
#define JEMM_NAMES_40 JEMM_NAMES_36 ", %36, %37, %38, %39"
#define JEMM_NAMES_64                                                                            \
  JEMM_NAMES_40                                                                                  \
  ", %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, " \
  "%58, %59, %60, %61, %62, %63"
#define JEMM_NAMES_128                                                                           \
  JEMM_NAMES_64                                                                                  \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, " \
  "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, "   \
  "%100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, "   \
  "%115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

/// acc [64, 80] = a [64, 16] b [80, 16]^T, added to acc if `adds`.
__device__ inline void multiply(float (&acc)[10][4], std::uint64_t a, std::uint64_t b, bool adds) {
  asm volatile(
      "{.reg .pred adds; setp.ne.b32 adds, %42, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n80k16.f32.bf16.bf16 {" JEMM_NAMES_40
      "}, %40, %41, adds, 1, 1, 0, 0;}"
      : JEMM_ACC(acc, 0), JEMM_ACC(acc, 2), JEMM_ACC(acc, 4), JEMM_ACC(acc, 6), JEMM_ACC(acc, 8)
      : "l"(a), "l"(b), "r"(static_cast<int>(adds)));
}

/// The same for 128 columns.
__device__ inline void multiply(float (&acc)[16][4], std::uint64_t a, std::uint64_t b, bool adds) {
  asm volatile(
      "{.reg .pred adds; setp.ne.b32 adds, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" JEMM_NAMES_64
      "}, %64, %65, adds, 1, 1, 0, 0;}"
      : JEMM_ACC_64(acc)
      : "l"(a), "l"(b), "r"(static_cast<int>(adds)));
}

/// acc [64, 72] += a [64, 16] b [16, 72], a in registers as mma.m16n8k16 takes it.
__device__ inline void multiply_add(float (&acc)[9][4], const std::uint32_t (&a)[4],
                                    std::uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n72k16.f32.bf16.bf16 {" JEMM_NAMES_36
               "}, {%36, %37, %38, %39}, %40, 1, 1, 1, 1;"
               : JEMM_ACC(acc, 0), JEMM_ACC(acc, 2), JEMM_ACC(acc, 4), JEMM_ACC(acc, 6),
                 "+f"(acc[8][0]), "+f"(acc[8][1]), "+f"(acc[8][2]), "+f"(acc[8][3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
/// The same for 256 columns.
__device__ inline void multiply_add(float (&acc)[32][4], const std::uint32_t (&a)[4],
                                    std::uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" JEMM_NAMES_128
               "}, {%128, %129, %130, %131}, %132, 1, 1, 1, 1;"
               : JEMM_ACC_64(acc), JEMM_ACC(acc, 16), JEMM_ACC(acc, 18), JEMM_ACC(acc, 20),
                 JEMM_ACC(acc, 22), JEMM_ACC(acc, 24), JEMM_ACC(acc, 26), JEMM_ACC(acc, 28),
                 JEMM_ACC(acc, 30)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

/// A whole warpgroup moves to kRegisters a thread.
template <int kRegisters>
__device__ inline void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ inline void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

#endif

/// A barrier in shared memory: its phase ends when `n` threads have arrived, and the next begins.
struct Barrier {
  std::uint64_t bits;

  __device__ void init(int n) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(&bits)), "r"(n)
                 : "memory");
  }
  __device__ void arrive() {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_address(&bits)) : "memory");
  }
  /// Arrives when all copies in the background that this thread has begun are there.
  __device__ void arrive_after_copies() {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(&bits))
                 : "memory");
  }
  /// Until the phase of this parity has ended; that before the first counts as ended, parity 1.
  __device__ void wait(int parity) {
    asm volatile(
        "{.reg .pred ended;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared.b64 ended, [%0], %1;\n"
        "@!ended bra again;}" ::"r"(shared_address(&bits)),
        "r"(parity)
        : "memory");
  }
};

/// Between writes to shared memory, seen by way of a barrier or a thread's own, and products that
/// read them.
__device__ inline void fence_writes_for_products() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace jemm::gpu

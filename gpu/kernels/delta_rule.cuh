// What both kernels of the delta rule share: operands of a head, rows on their way to shared
// memory. Device code, and the choice of a head's padded width.
#pragma once

#include <cstdint>

#include "gpu/cuda.h"
#include "gpu/kernels/kernels.h"
#include "gpu/kernels/tile_product.cuh"

namespace jemm::gpu::delta {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kChunk = kDeltaChunk;

template <typename T>
struct MathOf {
  using Type = Fp32Math;
};
template <>
struct MathOf<__nv_bfloat16> {
  using Type = Tf32Math;
};

// Where the operands of a value head stand.
struct HeadPlace {
  __device__ HeadPlace(const DeltaArgs& args, int h)
      : head(h),
        key_width(args.n_key_heads * args.key_dim),
        stride(2 * key_width + args.n_value_heads * args.value_dim),
        q(h / (args.n_value_heads / args.n_key_heads) * args.key_dim),
        k(key_width + q),
        v(2 * key_width + h * args.value_dim) {}
  int head, key_width;
  std::int64_t stride;  // of a row of qkv
  int q, k, v;          // offsets in it
};

// [64, kHead] of a chunk on the way to shared memory as floats, zeros where there are none. Where
// rows are whole and aligned, fetch() reads 16 bytes a thread and load into registers, so that
// memory is read ahead of the use; otherwise store() reads the elements one by one.
template <int kHead, typename From>
class Rows {
 public:
  __device__ void fetch(const From* from, std::int64_t stride, int n_rows, int width) {
    from_ = from;
    stride_ = stride;
    n_rows_ = n_rows;
    width_ = width;
    whole_ =
        width == kHead && stride % kVector == 0 && reinterpret_cast<std::uintptr_t>(from) % 16 == 0;
    if (!whole_) return;
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const int row = place(e) / kRowVectors, column = place(e) % kRowVectors * kVector;
      values_[e] = row < n_rows ? *reinterpret_cast<const uint4*>(from + row * stride + column)
                                : make_uint4(0, 0, 0, 0);
    }
  }

  __device__ void store(float* to, int to_stride) const {
    if (whole_) {
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        const int row = place(e) / kRowVectors, column = place(e) % kRowVectors * kVector;
        const auto* elements = reinterpret_cast<const From*>(&values_[e]);
        float* target = to + row * to_stride + column;
#pragma unroll
        for (int j = 0; j < kVector; j += 4) {
          *reinterpret_cast<float4*>(target + j) =
              make_float4(to_float(elements[j]), to_float(elements[j + 1]),
                          to_float(elements[j + 2]), to_float(elements[j + 3]));
        }
      }
      return;
    }
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < kChunk * kHead; i += kThreads) {
      const int row = i / kHead, column = i % kHead;
      const bool there = row < n_rows_ && column < width_;
      to[row * to_stride + column] = there ? to_float(from_[row * stride_ + column]) : 0.0f;
    }
  }

 private:
  static constexpr int kVector = 16 / sizeof(From);
  static constexpr int kRowVectors = kHead / kVector;
  static constexpr int kEach = kChunk * kRowVectors / kThreads;
  static_assert(kEach >= 1);

  __device__ static int place(int e) {
    return static_cast<int>(threadIdx.x) + e * kThreads;
  }

  const From* from_ = nullptr;
  std::int64_t stride_ = 0;
  int n_rows_ = 0, width_ = 0;
  bool whole_ = false;
  uint4 values_[kEach];
};

template <typename Kernel>
void allow_shared(Kernel* kernel, std::size_t bytes) {
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(bytes)),
             "delta_rule");
}

/// Whether heads are padded to 32, not to kMaxDeltaHead.
inline bool is_narrow(const DeltaArgs& args) {
  check_limit("a delta-rule key's width", args.key_dim, kMaxDeltaHead);
  check_limit("a delta-rule value's width", args.value_dim, kMaxDeltaHead);
  return args.key_dim <= 32 && args.value_dim <= 32;
}

}  // namespace jemm::gpu::delta

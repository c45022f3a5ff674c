// Kernels that bring weights into the form that the engine keeps them in.
#pragma once

#include "gpu/kernels/stream.h"

namespace jemm::gpu {

/// As DType of the checkpoint.
enum class StoredType : std::uint8_t { kBf16, kF16, kF32 };

/// to[i] = from[i], rounded to T where that is narrower. T: float, __nv_bfloat16.
template <typename T>
void convert(const void* from, StoredType type, std::int64_t n, T* to, StreamHandle stream);

/// to[i] = BF16(float(centre + (2 u - 1) width)) of elements first + i, u from the hash of
/// docs/synthetic.md with the tensor's `name_hash`; kept as T.
struct FormulaFill {
  std::uint32_t name_hash = 0;
  std::int64_t first = 0;
  double centre = 0, width = 0;
};
template <typename T>
void fill_by_formula(const FormulaFill& fill, std::int64_t n, T* to, StreamHandle stream);

/// Reads n_bytes, a multiple of 16, and so fills the device's cache with lines that need no writing
/// back. (A value that depends on all of them may go to the first word.)
void read_through(void* p, std::int64_t n_bytes, StreamHandle stream);

}  // namespace jemm::gpu

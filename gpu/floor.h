// The least time that a text forward can take. Includes no CUDA header: any room may see this one.
#pragma once

#include <cstdint>

#include "checkpoint/config.h"

namespace jemm {

/// Milliseconds of all linear layers of a forward of `n_rows` rows in BF16 on a CUDA device,
/// without an adapter: those that read the same input as one product, each by cuBLASLt's fastest
/// algorithm with weights that are in no cache. Searches anew each time, for a second or two.
/// Throws Error(kDevice).
double text_floor_ms(int device, const TextConfig& config, std::int64_t n_rows);

}  // namespace jemm

// Operations on every element alone. Knows no layouts.
#pragma once

#include <cstdint>

namespace jemm::cpu {

/// out = gate / (1 + exp(-gate)) * x. `out` may be one of the inputs.
void silu_multiply(const float* gate, const float* x, float* out, std::int64_t n);

/// out = x * sigmoid(gate). `out` may be one of the inputs.
void sigmoid_multiply(const float* gate, const float* x, float* out, std::int64_t n);

/// to = from, exact: BF16 is the upper half of a float32.
void widen_bf16(const std::uint16_t* from, float* to, std::int64_t n);

/// sum += x.
void add(const float* x, float* sum, std::int64_t n);

}  // namespace jemm::cpu

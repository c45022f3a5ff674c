// Operations on every element alone. Knows no layouts.
#pragma once

#include <cstdint>

namespace jemm::cpu {

/// out = gate / (1 + exp(-gate)) * x. `out` may be one of the inputs.
void silu_multiply(const float* gate, const float* x, float* out, std::int64_t n);

/// out = x * sigmoid(gate). `out` may be one of the inputs.
void sigmoid_multiply(const float* gate, const float* x, float* out, std::int64_t n);

/// x = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), in place. Reference: gelu_pytorch_tanh.
void gelu_tanh(float* x, std::int64_t n);

/// x = x / 2 (1 + erf(x / sqrt(2))), in place. Reference: torch.nn.GELU.
void gelu_erf(float* x, std::int64_t n);

/// to = from, exact: BF16 is the upper half of a float32.
void widen_bf16(const std::uint16_t* from, float* to, std::int64_t n);

/// sum += x.
void add(const float* x, float* sum, std::int64_t n);

}  // namespace jemm::cpu

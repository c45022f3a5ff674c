// Loops over elements.
#include "cpu/elementwise.h"

#include <bit>
#include <cmath>

#include "cpu/vector_math.h"

namespace jemm::cpu {

JEMM_CLONES
void silu_multiply(const float* gate, const float* x, float* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = vector_silu(gate[i]) * x[i];
}

JEMM_CLONES
void sigmoid_multiply(const float* gate, const float* x, float* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = x[i] * vector_sigmoid(gate[i]);
}

JEMM_CLONES
void gelu_tanh(float* x, std::int64_t n) {
  constexpr float kTwice = 2 * 0.797884560802865356f;  // (1 + tanh(u)) / 2 = sigmoid(2 u)
  for (std::int64_t i = 0; i < n; ++i) {
    const float cubic = x[i] + 0.044715f * (x[i] * x[i] * x[i]);
    x[i] *= vector_sigmoid(kTwice * cubic);
  }
}

void gelu_erf(float* x, std::int64_t n) {
  constexpr float kInverseRoot = 0.707106781186547524f;
  for (std::int64_t i = 0; i < n; ++i) x[i] *= 0.5f * (1.0f + std::erf(x[i] * kInverseRoot));
}

JEMM_CLONES
void widen_bf16(const std::uint16_t* from, float* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    to[i] = std::bit_cast<float>(static_cast<std::uint32_t>(from[i]) << 16);
  }
}

JEMM_CLONES
void add(const float* x, float* sum, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] += x[i];
}

}  // namespace jemm::cpu

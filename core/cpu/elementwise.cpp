#include "cpu/elementwise.h"

#include <bit>

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

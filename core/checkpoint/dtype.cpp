// Sizes and names of types, and halves widened to float.
#include "checkpoint/dtype.h"

#include <cmath>
#include <cstring>

namespace jemm {

static_assert(std::endian::native == std::endian::little, "weights are read as little-endian");

std::size_t dtype_size(DType dtype) {
  return dtype == DType::kF32 ? 4 : 2;
}

std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kBf16:
      return "BF16";
    case DType::kF16:
      return "F16";
    case DType::kF32:
      return "F32";
  }
  return "?";
}

float f16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1Fu;
  const std::uint32_t mantissa = bits & 0x3FFu;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent == 0) {  // subnormal: mantissa * 2^-24
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

namespace {

template <float Convert(std::uint16_t)>
void widen_halves(std::span<const std::byte> from, std::span<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, from.data() + 2 * i, sizeof bits);
    to[i] = Convert(bits);
  }
}

}  // namespace

void widen(DType dtype, std::span<const std::byte> from, std::span<float> to) {
  switch (dtype) {
    case DType::kBf16:
      widen_halves<bf16_to_float>(from, to);
      break;
    case DType::kF16:
      widen_halves<f16_to_float>(from, to);
      break;
    case DType::kF32:
      if (!to.empty()) std::memcpy(to.data(), from.data(), to.size_bytes());
      break;
  }
}

}  // namespace jemm

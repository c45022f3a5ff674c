// Element types of weights and their widening to float. Knows no tensors.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace jemm {

enum class DType { kBf16, kF16, kF32 };
std::size_t dtype_size(DType dtype);
std::string_view dtype_name(DType dtype);  ///< as in safetensors: "BF16", "F16", "F32"

/// Exact.
inline float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Rounds to nearest, ties to even, as PyTorch does; every NaN becomes 0x7FC0.
inline std::uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  return static_cast<std::uint16_t>(value == value ? rounded : 0x7FC0u);
}

/// Exact.
float f16_to_float(std::uint16_t bits);

/// to[i] = element i of `from`, little-endian of type `dtype`, at any alignment. Exact.
/// Requires from.size() == to.size() * dtype_size(dtype).
void widen(DType dtype, std::span<const std::byte> from, std::span<float> to);

}  // namespace jemm

#include "checkpoint/dtype.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "checkpoint/tensor.h"

namespace jemm {
namespace {

TEST_CASE("BF16 rounds to nearest, ties to even") {
  CHECK(float_to_bf16(1.0F) == 0x3F80);
  CHECK(float_to_bf16(-0.0F) == 0x8000);
  CHECK(float_to_bf16(std::bit_cast<float>(0x3F808000U)) == 0x3F80);  // tie, even below
  CHECK(float_to_bf16(std::bit_cast<float>(0x3F818000U)) == 0x3F82);  // tie, even above
  CHECK(float_to_bf16(std::bit_cast<float>(0x3F808001U)) == 0x3F81);
  CHECK(float_to_bf16(std::bit_cast<float>(0x3F817FFFU)) == 0x3F81);
  CHECK(float_to_bf16(std::numeric_limits<float>::max()) == 0x7F80);  // to infinity
  CHECK(float_to_bf16(std::numeric_limits<float>::infinity()) == 0x7F80);
  CHECK(float_to_bf16(-std::numeric_limits<float>::infinity()) == 0xFF80);
  CHECK(float_to_bf16(std::bit_cast<float>(0xFFFFFFFFU)) == 0x7FC0);  // as torch.bfloat16
  CHECK(float_to_bf16(std::bit_cast<float>(0x7F800001U)) == 0x7FC0);
  CHECK(float_to_bf16(std::numeric_limits<float>::denorm_min()) == 0);
  CHECK(float_to_bf16(256.75F) == 0x4380);  // 256: small updates are lost in BF16
}

TEST_CASE("every BF16 value but NaN survives float and back") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = bf16_to_float(half);
    if (!std::isnan(value) && float_to_bf16(value) != half) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("every F16 value is sign * mantissa * 2^exponent") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = f16_to_float(static_cast<std::uint16_t>(bits));
    const int exponent = static_cast<int>(bits >> 10 & 0x1F);
    const int mantissa = static_cast<int>(bits & 0x3FF);
    bool right = false;
    if (exponent == 31) {
      right = mantissa == 0 ? std::isinf(value) : std::isnan(value);
    } else if (exponent == 0) {
      right = std::fabs(value) == mantissa * std::pow(2.0, -24);
    } else {
      right = std::fabs(value) == (1024 + mantissa) * std::pow(2.0, exponent - 25);
    }
    if (!right || std::signbit(value) != (bits >= 0x8000)) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("spans widen at any alignment") {
  const std::array<std::uint16_t, 3> halves{0x3F80, 0xC000, 0x4049};
  std::vector<std::byte> bytes(1 + sizeof halves);
  std::memcpy(bytes.data() + 1, halves.data(), sizeof halves);
  std::array<float, 3> values{};
  widen(DType::kBf16, std::span(bytes).subspan(1), values);
  CHECK(values == std::array{1.0F, -2.0F, 3.140625F});
  widen(DType::kF16, std::span(bytes).subspan(1), values);
  CHECK(values[1] == -2.0F);

  const std::array<float, 2> floats{0.1F, -7.5F};
  bytes.resize(1 + sizeof floats);
  std::memcpy(bytes.data() + 1, floats.data(), sizeof floats);
  std::array<float, 2> copied{};
  widen(DType::kF32, std::span(bytes).subspan(1), copied);
  CHECK(copied == floats);
  widen(DType::kF32, {}, {});
}

TEST_CASE("a tensor widens to float") {
  static constexpr std::array<std::uint16_t, 2> kHalves{0x3F80, 0xC000};
  const Tensor tensor{DType::kBf16, {2, 1}, {std::as_bytes(std::span(kHalves)), nullptr}};
  const Tensor wide = widened(tensor);
  CHECK(wide.dtype == DType::kF32);
  CHECK(wide.shape == Shape{2, 1});
  REQUIRE(wide.data.bytes.size() == 8);
  std::array<float, 2> values{};
  std::memcpy(values.data(), wide.data.bytes.data(), sizeof values);
  CHECK(values == std::array{1.0F, -2.0F});
  CHECK(widened(wide).data.bytes.data() == wide.data.bytes.data());
  CHECK(shape_text(wide.shape) == "[2, 1]");
  CHECK(shape_text({}) == "[]");
  CHECK(element_count({}) == 1);
}

}  // namespace
}  // namespace jemm

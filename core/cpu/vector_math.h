// Exponentials that the compiler can vectorise, and how a function is built for several widths.
#pragma once

#include <bit>
#include <cstdint>

/// Builds a function for several instruction sets; the best is picked when the program starts.
/// Products and sums are not contracted (-ffp-contract=off), so all of them give the same bits. With
/// ThreadSanitizer there is one: the picking runs before its own start and would crash.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define JEMM_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define JEMM_CLONES
#endif

namespace jemm::cpu {

/// exp(x) within 2 units in the last place; exactly 0 below -104, infinity above 88.8, NaN for
/// NaN. x = n log 2 + r with |r| <= log(2)/2; Taylor series of r to the 7th power (its rest is
/// below 6e-9), then the two halves of 2^n, so that neither leaves the range of a float early.
[[gnu::always_inline]] inline float vector_exp(float x) {
  constexpr float kLog2e = 1.44269504088896341f;
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;  // their sum is log 2
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it leaves an integer in the low bits
  x = x < -110.0f ? -110.0f : x;
  x = x > 100.0f ? 100.0f : x;
  const float shifted = x * kLog2e + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const auto bits = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(kRound);
  const std::int32_t whole = static_cast<std::int32_t>(bits);
  const std::int32_t half = whole >> 1;
  const auto power = [](std::int32_t e) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(e + 127) << 23);
  };
  return p * power(half) * power(whole - half);
}

[[gnu::always_inline]] inline float vector_sigmoid(float x) {
  return 1.0f / (1.0f + vector_exp(-x));
}
[[gnu::always_inline]] inline float vector_silu(float x) {
  return x / (1.0f + vector_exp(-x));
}

}  // namespace jemm::cpu

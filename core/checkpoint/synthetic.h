// Weights from a formula of name and index (docs/synthetic.md). Knows no files.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "checkpoint/adapter_config.h"
#include "checkpoint/registry.h"

namespace jemm {

/// The hash's finaliser; a bijection of 32 bits.
constexpr std::uint32_t synthetic_mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  return x ^ (x >> 16);
}

/// What the formula makes of the elements of a base tensor, from u in [0, 1).
struct SyntheticFormula {
  enum class Kind {
    kSpread,    // centre + (2u - 1) width
    kLogDecay,  // log(0.01 + 15.99 u)
    kTimeBias,  // 5u - 4
  };
  Kind kind = Kind::kSpread;
  std::uint32_t name_hash = 0;  // of the name and the seed: s of docs/synthetic.md
  double centre = 0, width = 0;
};
SyntheticFormula synthetic_formula(const TensorInfo& info, std::uint32_t seed);

/// Elements [begin, begin + n) of a base tensor as BF16, n = out.size() / 2.
void synthetic_elements(const TensorInfo& info, std::uint32_t seed, std::uint64_t begin,
                        std::span<std::byte> out);
/// A base tensor: BF16, rounded to nearest even from float, which is rounded from double.
Tensor synthetic_tensor(const TensorInfo& info, std::uint32_t seed);
/// One half of a pair, float. `suffix` is kLoraA or kLoraB.
Tensor synthetic_lora(const AdapterTarget& target, std::string_view suffix, std::uint32_t seed);

}  // namespace jemm

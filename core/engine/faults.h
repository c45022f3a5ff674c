// Faults that builds with JEMM_FAULTS can plant in an engine, to show that the judge sees them. A
// release has none of them: planted() is a constant there.
#pragma once

namespace jemm {

enum class EngineFault {
  kNone,
  kDroppedLoraPair,     ///< the update of layer 1's mlp.down_proj is left out, from loading on
  kUnscaledQuery,       ///< full attention without 1 / sqrt(head_dim)
  kUnscaledDeltaQuery,  ///< the delta rule without 1 / sqrt(key_head_dim)
  kRotarySection,       ///< height and width exchanged in the rotary sections
  kBf16State,           ///< the delta rule's state rounded to BF16 where a segment begins
  kStaleState,          ///< the delta rule's state lost where a segment begins
};

#if defined(JEMM_FAULTS)
inline constexpr bool kFaultsBuilt = true;
inline EngineFault planted_fault = EngineFault::kNone;
inline bool planted(EngineFault fault) {
  return planted_fault == fault;
}
#else
inline constexpr bool kFaultsBuilt = false;
constexpr bool planted(EngineFault /*fault*/) {
  return false;
}
#endif

}  // namespace jemm

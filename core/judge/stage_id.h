// The stages that the judge compares, in the order in which a difference travels through them.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace jemm {

enum class StageKind : std::uint8_t {
  kAccept,
  kPrompt,
  kTokens,
  kImageRgb,
  kImageGrid,
  kImagePixels,
  kPositions,
  kVision,
  kLayer,
  kFinalNorm,
  kLogits,
  kProbabilities,
  kDecision,
  kUsage,
};
inline constexpr int kStageKinds = 14;
inline constexpr int kAnyLayer = -1;  ///< stands for layers of which none is known

/// A stage; `layer` counts the hidden states after each layer.
struct StageId {
  StageKind kind = StageKind::kAccept;
  int layer = 0;

  auto operator<=>(const StageId&) const = default;
};

/// "accept", "image.rgb", "layer.07", ...; "layer" for kAnyLayer.
std::string stage_name(StageId stage);
/// The stage of that name, spelled exactly so; nothing for other text.
std::optional<StageId> parse_stage(std::string_view name);

/// True for stages whose values are floats within a budget; the others are equal or fail.
constexpr bool is_numeric(StageKind kind) {
  return kind == StageKind::kVision || kind == StageKind::kLayer || kind == StageKind::kFinalNorm ||
         kind == StageKind::kLogits || kind == StageKind::kProbabilities;
}
/// True for the stages that are kept as tensors of floats.
constexpr bool is_tensor(StageKind kind) {
  return kind == StageKind::kVision || kind == StageKind::kLayer || kind == StageKind::kFinalNorm;
}

/// Which kinds of stages a run compares.
class StageSet {
 public:
  static StageSet all();
  /// A comma list of kinds: their names without a layer's number, "image" for its three. Throws
  /// Error(kUsage) for an empty list or an unknown name.
  static StageSet parse(std::string_view list);

  bool has(StageKind kind) const { return (bits_ >> static_cast<unsigned>(kind) & 1) != 0; }
  bool needs_engine() const;   ///< any stage that takes weights
  bool needs_tensors() const;  ///< any stage that a tap observes
  bool has_all(const StageSet& others) const { return (others.bits_ & ~bits_) == 0; }
  StageSet without_tensors() const;
  std::string names() const;  ///< a comma list, in order

 private:
  void add(StageKind kind) { bits_ |= 1u << static_cast<unsigned>(kind); }
  void remove(StageKind kind) { bits_ &= ~(1u << static_cast<unsigned>(kind)); }

  std::uint32_t bits_ = 0;
};

}  // namespace jemm

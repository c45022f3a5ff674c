// What every engine offers, and the tap that observes its stages. Knows no backend.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/timings.h"
#include "plan/forest.h"

namespace jemm {

/// Observes named stages ("layer.00", "final_norm", "vision") without changing the result.
class Tap {
 public:
  virtual ~Tap() = default;
  /// Called once a stage (names: stages.h) for each entry of forest.read_rows, in that order.
  /// `row`: packed row of the forest. values: [width] float32, valid during the call.
  virtual void observe(std::string_view stage, std::int64_t row, std::span<const float> values) = 0;
};

using LabelLogits = std::array<float, 32>;

/// One forward pass at a time. Results of a row do not depend on which other rows share the pass.
class Engine {
 public:
  virtual ~Engine() = default;

  /// Logits of the 32 labels for every entry of forest.read_rows, in that order. Not-a-number and
  /// infinity are handed on as they come. The time spent in the engine's stages is added to `times`
  /// (its total is not). `tap`, when given, sees the read rows of every stage. Throws Error(kDevice)
  /// for an unusable forest or a token outside the vocabulary.
  virtual std::vector<LabelLogits> forward(const Forest& forest, StageTimes& times,
                                           Tap* tap = nullptr) = 0;

  /// Build, weights, precision and modes; equal fingerprints promise equal answers.
  virtual const std::string& fingerprint() const = 0;
};

}  // namespace jemm

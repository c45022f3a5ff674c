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
  /// Called once a stage (names: stages.h) for each entry of forest.read_rows, in that order; the
  /// stage "vision" for each row that shows an image instead, in the order of the rows.
  /// `row`: packed row of the forest. values: [width] float32, valid during the call.
  virtual void observe(std::string_view stage, std::int64_t row, std::span<const float> values) = 0;
};

/// One image as the vision tower reads it: a row of values a patch, the patches of a merged row
/// together (image/patches.h).
struct ImagePatches {
  std::array<std::int64_t, 3> grid_thw{};  // patches: 1, rows, columns
  std::span<const float> values;           // [rows * columns, values of a patch]
};

/// What an engine has made of an image: merged rows, kept where that engine wants them. May outlive
/// its engine, but only that engine can use it.
class VisionRows {
 public:
  virtual ~VisionRows() = default;
  virtual std::int64_t n_rows() const = 0;
  virtual std::size_t size_bytes() const = 0;
};
using VisionRowsPtr = std::shared_ptr<const VisionRows>;

using LabelLogits = std::array<float, 32>;

/// One call at a time, from any thread. The time spent in the engine's stages is added to the
/// `times` of a call (its total is not). Results of a row do not depend on which other rows share
/// the pass.
class Engine {
 public:
  virtual ~Engine() = default;

  /// The merged vision rows of every image, in order. They do not depend on which other images
  /// share the call. Throws Error(kDevice) for patches that are no such grid, OutOfMemory.
  virtual std::vector<VisionRowsPtr> vision(std::span<const ImagePatches> images,
                                            StageTimes& times) = 0;

  /// Logits of the 32 labels for every entry of forest.read_rows, in that order. `images`: what
  /// forest.image_rows refers to, made by this engine. Not-a-number and infinity are handed on as
  /// they come. `tap`, when given, sees every stage. Throws Error(kDevice) for an unusable forest,
  /// a token outside the vocabulary or an image that does not have the rows; OutOfMemory when the
  /// device cannot hold so many rows, but may hold fewer.
  virtual std::vector<LabelLogits> forward(const Forest& forest,
                                           std::span<const VisionRowsPtr> images, StageTimes& times,
                                           Tap* tap = nullptr) = 0;

  /// Build, weights, precision and modes; equal fingerprints promise equal answers.
  virtual const std::string& fingerprint() const = 0;
};

}  // namespace jemm

// The vision tower: patches of images to the rows that replace their placeholders in a prompt.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "cpu/attention.h"
#include "cpu/context.h"
#include "cpu/rotary.h"
#include "cpu/tiles.h"
#include "cpu/vision_weights.h"
#include "engine/engine.h"

namespace jemm::cpu {

/// All float32; a patch sees the patches of its own image. M: patches a merged row.
class VisionTower {
 public:
  /// Throws what the checkpoint throws.
  explicit VisionTower(const Checkpoint& checkpoint);

  /// Merged rows [grid rows * grid columns / M, D] of every image: the same bits whatever other
  /// images there are. Throws Error(kDevice) for values that are no such grid.
  std::vector<Matrix> run(Context& context, std::span<const ImagePatches> images);

 private:
  /// What a pass knows of its images before the first block.
  struct Pass {
    std::vector<Run> runs;         // an image is a run
    std::vector<QueryTile> tiles;  // every query sees its whole image
    RotaryTable rotary;            // [P]
  };

  Pass embed(Context& context, std::span<const ImagePatches> images);
  void attend(Context& context, const VisionBlockWeights& block, const Pass& pass);
  void merge(Context& context);

  VisionConfig config_;
  VisionWeights weights_;

  // Activations, kept from call to call.
  Matrix patches_;             // [P, values of a patch]
  Tiles x_, normed_, update_;  // [P, Dimg]
  Tiles q_, k_, v_;            // [P, Dimg]
  Matrix q_rows_, k_rows_, v_rows_, attended_;
  Tiles inner_;    // [P, Fimg], then [P / M, M Dimg]
  Matrix merged_;  // [P / M, M Dimg], then [P / M, D]
};

}  // namespace jemm::cpu

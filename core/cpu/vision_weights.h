// The vision tower's weights by their place in the model. Large matrices stay as they are stored.
#pragma once

#include <vector>

#include "checkpoint/checkpoint.h"
#include "cpu/linear.h"

namespace jemm::cpu {

struct LayerNormWeights {
  std::vector<float> weight, bias;  // [width]
};

struct VisionBlockWeights {
  LayerNormWeights norm1;
  Linear q, k, v;  // [Dv, Dv]; attn.qkv holds them one below the other
  Linear proj;     // [Dv, Dv]
  LayerNormWeights norm2;
  Linear fc1;  // [Fv, Dv]
  Linear fc2;  // [Dv, Fv]
};

struct VisionWeights {
  Linear patch_embed;                // [Dv, values of a patch]: channel, frame, row, column
  std::vector<float> position_grid;  // [side, side, Dv]
  std::vector<VisionBlockWeights> blocks;
  LayerNormWeights merger_norm;  // [Dv]
  Linear merger_fc1;             // [merge^2 Dv, merge^2 Dv]
  Linear merger_fc2;             // [D, merge^2 Dv]
};

/// The result refers to the checkpoint's bytes and keeps them alive. Throws what the checkpoint
/// throws.
VisionWeights load_vision_weights(const Checkpoint& checkpoint);

}  // namespace jemm::cpu

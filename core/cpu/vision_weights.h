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
  Linear q, k, v;  // [Dimg, Dimg]; attn.qkv holds them one below the other
  Linear proj;     // [Dimg, Dimg]
  LayerNormWeights norm2;
  Linear fc1;  // [Fimg, Dimg]
  Linear fc2;  // [Dimg, Fimg]
};

struct VisionWeights {
  Linear patch_embed;                // [Dimg, values of a patch]: channel, frame, row, column
  std::vector<float> position_grid;  // [side, side, Dimg]
  std::vector<VisionBlockWeights> blocks;
  LayerNormWeights merger_norm;  // [Dimg]
  Linear merger_fc1;             // [M Dimg, M Dimg]
  Linear merger_fc2;             // [D, M Dimg]
};

/// The result refers to the checkpoint's bytes and keeps them alive. Throws what the checkpoint
/// throws.
VisionWeights load_vision_weights(const Checkpoint& checkpoint);

}  // namespace jemm::cpu

// A checkpoint's text weights by their place in the model, and how single weights are read. Large
// matrices stay as they are stored.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "cpu/linear.h"

namespace jemm::cpu {

struct AttentionWeights {
  Linear q;                   // [Hq (query Dh, gate Dh), D]
  Linear k, v;                // [Hkv Dh, D]
  Linear o;                   // [D, Hq Dh]
  std::vector<float> q_norm;  // [Dh], one added
  std::vector<float> k_norm;  // [Dh], one added
};

struct DeltaNetWeights {
  Linear qkv;                  // [Hk Dk + Hk Dk + Hv Dv, D]
  Linear z;                    // [Hv Dv, D]
  Linear a, b;                 // [Hv, D]
  Linear out;                  // [D, Hv Dv]
  std::vector<float> taps;     // [conv_width, conv_dim]: the convolution, oldest row first
  std::vector<float> decay;    // [Hv] exp(A_log)
  std::vector<float> dt_bias;  // [Hv]
  std::vector<float> norm;     // [Dv], as stored
};

struct LayerWeights {
  std::vector<float> input_norm;  // [D], one added
  std::variant<DeltaNetWeights, AttentionWeights> mixer;
  std::vector<float> post_norm;  // [D], one added
  Linear gate, up;               // [F, D]
  Linear down;                   // [D, F]
};

struct TextWeights {
  Tensor embedding;  // [V, D]
  std::vector<LayerWeights> layers;
  std::vector<float> final_norm;  // [D], one added
  Linear head;                    // [32, D]: the label rows alone, float32
};

/// A tensor's values, widened.
std::vector<float> floats(const Checkpoint& checkpoint, const std::string& name);

/// Throws Error(kInput) for tensors that are not there and for label ids outside the vocabulary.
/// The result refers to the checkpoint's bytes and keeps them alive.
TextWeights load_text_weights(const Checkpoint& checkpoint,
                              std::span<const std::int32_t, 32> label_ids);

}  // namespace jemm::cpu

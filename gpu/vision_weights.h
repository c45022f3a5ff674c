// The vision tower's weights on the device, by their place in the model.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/cuda.h"
#include "gpu/loader.h"

namespace jemm::gpu {

/// y = W x + b.
template <typename T>
struct BiasedLinear {
  std::int64_t n_out = 0, n_in = 0;
  const T* weight = nullptr;  // [n_out, n_in]
  const T* bias = nullptr;    // [n_out]
};

template <typename T>
struct LayerNormWeights {
  const T* weight = nullptr;  // [Dimg]
  const T* bias = nullptr;
};

template <typename T>
struct VisionBlockWeights {
  LayerNormWeights<T> norm1, norm2;
  BiasedLinear<T> qkv;   // [3 Dimg, Dimg]
  BiasedLinear<T> proj;  // [Dimg, Dimg]
  BiasedLinear<T> fc1;   // [Fimg, Dimg]
  BiasedLinear<T> fc2;   // [Dimg, Fimg]
};

/// T: float, or bf16, to which wider weights are rounded.
template <typename T>
struct VisionWeights {
  BiasedLinear<T> patch_embed;       // [Dimg, values of a patch]: channel, frame, row, column
  const T* position_grid = nullptr;  // [side, side, Dimg]
  std::vector<VisionBlockWeights<T>> blocks;
  LayerNormWeights<T> merger_norm;
  BiasedLinear<T> merger_fc1;  // [M Dimg, M Dimg]
  BiasedLinear<T> merger_fc2;  // [D, M Dimg]

  DeviceBytes memory;  // of all of them
};

/// Copies them to the device and waits. Throws what the checkpoint throws, Error(kDevice).
template <typename T>
VisionWeights<T> load_vision_weights(Loader& loader);

}  // namespace jemm::gpu

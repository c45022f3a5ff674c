// The text model's weights in device memory, in the groups that the forward multiplies with.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "gpu/cuda.h"
#include "gpu/kernels/kernels.h"
#include "gpu/loader.h"

namespace jemm::gpu {

/// Layers that read the same input, their outputs side by side, and their low-rank pairs, whose
/// first factors are further rows of the weight: one product gives the outputs and the low-rank
/// inputs behind them. Layers of the group without a pair have one of zeros when another has one.
template <typename T>
struct LinearGroup {
  std::int64_t n_in = 0;
  std::int64_t n_out = 0;  // of the layers, padded with zero rows: a multiple of 8
  std::int64_t width = 0;  // n_out + n_layers * rank: a row of the product
  DeviceArray<T> w;        // [width, n_in]

  std::int32_t rank = 0;  // of all pairs, padded with zeros to a multiple of 16; 0: none has a pair
  DeviceArray<T> b;       // [rank, n_out], times the pair's scale
  std::int32_t n_layers = 0;
  std::array<std::int32_t, 4> ends{};  // one past each layer's last output and its padding

  std::int64_t begin(std::size_t layer) const { return layer == 0 ? 0 : ends[layer - 1]; }

  /// The consumer's view of y [rows, width], the input's product with w.
  LowRank<T> update(const T* y) const {
    return {.low = y + n_out,
            .stride = width,
            .b = b.data(),
            .b_stride = n_out,
            .rank = rank,
            .n_layers = n_layers,
            .ends = {ends[0], ends[1], ends[2], ends[3]}};
  }
};

template <typename T>
struct DeltaNetWeights {
  DeviceArray<float> taps;       // [conv_width, conv_dim], oldest first
  DeviceArray<float> decay;      // [Hv] exp(A_log)
  DeviceArray<float> time_bias;  // [Hv]
  DeviceArray<float> norm;       // [Dv], as stored
};

template <typename T>
struct AttentionWeights {
  DeviceArray<float> q_norm, k_norm;  // [Dh], one added
};

template <typename T>
struct LayerWeights {
  DeviceArray<float> input_norm;  // [D], one added
  LinearGroup<T> in;              // delta net: qkv, z, b, a; attention: q with gates, k, v
  std::variant<DeltaNetWeights<T>, AttentionWeights<T>> mixer;
  LinearGroup<T> out;            // [D, Hv Dv or Hq Dh]
  DeviceArray<float> post_norm;  // [D], one added
  LinearGroup<T> gate_up;        // [2 F, D]
  LinearGroup<T> down;           // [D, F]
};

template <typename T>
struct TextWeights {
  DeviceArray<T> embedding;  // [V, D]
  std::vector<LayerWeights<T>> layers;
  DeviceArray<float> final_norm;  // [D], one added
  DeviceArray<float> head;        // [32, D]: the label rows alone
};

/// Throws Error(kInput) for label ids outside the head, Error(kDevice) when memory runs out. What
/// is enqueued is finished by loader.finish().
template <typename T>
TextWeights<T> load_text_weights(Loader& loader, std::span<const std::int32_t, 32> label_ids);

}  // namespace jemm::gpu

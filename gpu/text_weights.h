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

/// Layers that read the same input, their outputs side by side, and their low-rank pairs. Layers of
/// the group without a pair have one of zeros when another has one.
template <typename T>
struct LinearGroup {
  std::int64_t n_in = 0, n_out = 0;  // n_out: padded with zero rows to a multiple of 8
  DeviceArray<T> w;                  // [n_out, n_in]

  // Pairs. T = float: A as it is. BF16: A in three BF16 parts, whose products with the BF16 input
  // are exact and summed in FP32: an FP32 product on the matrix unit.
  static constexpr std::int32_t kParts = sizeof(T) == 2 ? 3 : 1;
  std::int32_t rank = 0;       // of all pairs, padded with zeros; 0: none has a pair
  std::int64_t low_width = 0;  // parts * layers * rank, padded to a multiple of 8
  DeviceArray<T> a;            // [low_width, n_in]
  DeviceArray<float> b;        // [n_out, rank], times the pair's scale
  std::int32_t n_layers = 0;
  std::array<std::int32_t, 4> ends{};  // one past each layer's last output

  /// The consumer's view of `low` [rows, low_width], the input's product with `a`.
  LowRank update(const float* low) const {
    return {.low = low,
            .stride = static_cast<std::int32_t>(low_width),
            .n_parts = kParts,
            .part_stride = n_layers * rank,
            .b = b.data(),
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

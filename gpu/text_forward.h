// The text model's forward on the device, for one activation type.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "checkpoint/config.h"
#include "gpu/cuda.h"
#include "gpu/gemm.h"
#include "gpu/pass_graphs.h"
#include "gpu/pass_upload.h"
#include "gpu/text_weights.h"

namespace jemm::gpu {

/// T: __nv_bfloat16, rounded where activations are stored, or float throughout; the residual stream
/// is FP32 in both, which keeps a pass nearer to FP32 than the reference's BF16. Everything is
/// enqueued on one stream; buffers grow with the rows and are kept.
template <typename T>
class TextForward {
 public:
  /// Shown after every layer and the final norm. x [rows, D]; indices: the read rows within it, on
  /// the device, or null when x holds the read rows alone.
  using Observe =
      std::function<void(const std::string& stage, const float* x, const std::int32_t* indices)>;

  /// `graphs`: passes of few rows are replayed when they come again, unless they are observed.
  TextForward(const TextConfig& config, TextWeights<T> weights, Gemms& gemms, const Stream& stream,
              bool graphs);

  /// In deterministic mode: chooses the algorithm of every product (Gemms::settle).
  void settle_products();
  /// x [rows, D] = the tokens' embeddings. The caller may overwrite rows before run().
  float* embed(const DevicePass& pass);
  /// From x to the normalised read rows. `observe` may be empty.
  void run(const DevicePass& pass, const Observe& observe);
  /// logits [reads, 32], on the device.
  const float* label_logits(const DevicePass& pass);

 private:
  void reserve(const DevicePass& pass);
  void enqueue(const DevicePass& pass, const Observe& observe);
  static Product product_of(const LinearGroup<T>& group);
  LowRank<T> multiply(const LinearGroup<T>& group, std::int64_t n_rows, const T* x, T* y,
                      const LinearGroup<T>* next);
  void delta_net(const LayerWeights<T>& layer, const DeltaNetWeights<T>& mixer,
                 const DevicePass& pass);
  void attend(const LayerWeights<T>& layer, const AttentionWeights<T>& mixer,
              const DevicePass& pass);

  const TextConfig& config_;
  float eps_;
  TextWeights<T> weights_;
  Gemms& gemms_;
  const Stream& stream_;
  bool uses_graphs_;
  PassGraphs graphs_;
  DeviceArray<float> frequency_;                                         // [rotary_dim / 2]
  DeviceArray<std::int32_t> axes_;                                       // [rotary_dim / 2]
  std::int64_t widest_in_ = 0, widest_update_ = 0, widest_gate_up_ = 0;  // rows of products

  // Activations, kept from pass to pass.
  DeviceArray<float> x_;                // [rows, D]
  DeviceArray<T> normed_;               // [rows, D]
  DeviceArray<T> projected_, update_;   // [rows, width of a mixer's group, of out or down]
  DeviceArray<T> mixed_;                // [rows, Hv Dv or Hq Dh]
  DeviceArray<T> heads_;                // [rows, conv_dim, or Hq Dh and Hkv Dh]
  DeviceArray<T> core_;                 // [rows, Hv Dv]
  DeviceArray<T> gate_up_, activated_;  // [rows, width of the group], [rows, F]
  DeviceArray<float> read_x_, final_;   // [reads, D]
  DeviceArray<T> read_mixed_;           // [reads, width of mixed_]
  DeviceArray<float> cosine_, sine_;    // [rows, rotary_dim / 2]
  DeviceArray<T> solved_v_, solved_k_;  // [rows, Hv, Dv], [rows, Hv, Dk]
  DeviceArray<T> ahead_;                // [rows, Hv, 64]
  DeviceArray<float> decays_;           // [rows, Hv, 2]
  DeviceArray<float> states_;           // [slots, Hv, Dk, Dv]
  DeviceArray<float> logits_;           // [reads, 32]
};

}  // namespace jemm::gpu

// A checkpoint in memory, so small that hundreds of forwards cost nothing, and easily changed.
#pragma once

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/registry.h"

namespace jemm::test {

inline ModelConfig small_config() {
  ModelConfig config;
  config.text = {.vocab_size = 1200,
                 .hidden_size = 24,
                 .intermediate_size = 40,
                 .layer_types = {LayerType::kLinearAttention, LayerType::kFullAttention,
                                 LayerType::kLinearAttention, LayerType::kFullAttention},
                 .rms_norm_eps = 1e-6,
                 .n_heads = 4,
                 .n_kv_heads = 2,
                 .head_dim = 12,
                 .rotary_dim = 8,
                 .rope_theta = 1e4,
                 .mrope_section = {2, 1, 1},
                 .n_key_heads = 1,
                 .n_value_heads = 3,
                 .key_head_dim = 8,
                 .value_head_dim = 20,
                 .conv_width = 4};
  config.vision = {.depth = 2,
                   .hidden_size = 24,
                   .intermediate_size = 20,
                   .n_heads = 2,
                   .n_channels = 3,
                   .patch_size = 2,
                   .temporal_patch_size = 2,
                   .merge_size = 2,
                   .n_position_embeddings = 36,
                   .out_hidden_size = 24,
                   .rope_theta = 1e4};
  return config;
}

class SmallCheckpoint : public Checkpoint {
 public:
  explicit SmallCheckpoint(ModelConfig config = small_config()) : config_(std::move(config)) {
    const TensorRegistry registry(config_);
    std::mt19937 random(7);
    for (const TensorInfo& info : registry.tensors()) {
      tensors_[info.name] = {info.shape, values(random, info)};
      if (!info.takes_lora) continue;
      const std::int64_t rank = 3;
      LoraPair pair{
          floats_as_tensor({rank, info.shape[1]}, noise(random, rank * info.shape[1], 0.3)),
          floats_as_tensor({info.shape[0], rank}, noise(random, rank * info.shape[0], 0.2)), 1.5};
      lora_[std::string(module_name(info))] = std::move(pair);
    }
  }

  /// Overwrites a tensor's values.
  std::vector<float>& values_of(const std::string& name) { return tensors_.at(name).values; }
  void remove_lora() { lora_.clear(); }
  void set_dtype(DType dtype) { dtype_ = dtype; }

  const ModelConfig& config() const override { return config_; }
  const DecisionConfig& decision() const override { return decision_; }
  const FileSource& base_files() const override { fail(ErrorKind::kInput, "no files"); }
  std::string fingerprint() const override { return "small"; }
  Tensor tensor(std::string_view name) const override {
    const Stored& stored = tensors_.at(std::string(name));
    if (dtype_ == DType::kF32) return floats_as_tensor(stored.shape, stored.values);
    const auto bytes = std::make_shared<std::vector<std::uint16_t>>();
    for (const float v : stored.values) bytes->push_back(float_to_bf16(v));
    return {DType::kBf16, stored.shape, {std::as_bytes(std::span(*bytes)), bytes}};
  }
  std::optional<LoraPair> lora(std::string_view module) const override {
    const auto at = lora_.find(std::string(module));
    return at == lora_.end() ? std::nullopt : std::optional(at->second);
  }

 private:
  struct Stored {
    Shape shape;
    std::vector<float> values;
  };

  static Tensor floats_as_tensor(Shape shape, std::vector<float> values) {
    const auto owned = std::make_shared<std::vector<float>>(std::move(values));
    return {DType::kF32, std::move(shape), {std::as_bytes(std::span(*owned)), owned}};
  }
  static std::vector<float> noise(std::mt19937& random, std::int64_t n, double size) {
    std::vector<float> v(static_cast<std::size_t>(n));
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (float& x : v) x = static_cast<float>(size) * uniform(random);
    return v;
  }
  static std::vector<float> values(std::mt19937& random, const TensorInfo& info) {
    const std::int64_t n = element_count(info.shape);
    switch (info.role) {
      case TensorRole::kOffsetNorm:
        return noise(random, n, 0.2);
      case TensorRole::kLayerNorm:
      case TensorRole::kGatedNorm: {
        std::vector<float> v = noise(random, n, 0.2);
        for (float& x : v) x += 1;
        return v;
      }
      case TensorRole::kLogDecay:
        return noise(random, n, 2);
      case TensorRole::kTimeBias:
        return noise(random, n, 2);
      case TensorRole::kConvolution:
        return noise(random, n, 0.8);
      case TensorRole::kEmbedding:
        return noise(random, n, 1.5);
      default:
        return noise(random, n, 1.7 / std::sqrt(static_cast<double>(info.shape.back())));
    }
  }

  ModelConfig config_;
  DecisionConfig decision_{1, 1, 0.5};
  DType dtype_ = DType::kBf16;
  std::map<std::string, Stored> tensors_;
  std::map<std::string, LoraPair> lora_;
};

}  // namespace jemm::test

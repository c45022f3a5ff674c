// Finds each layer's tensors by name and widens the small ones.
#include "cpu/weights.h"

#include <cmath>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "base/error.h"
#include "engine/faults.h"

namespace jemm::cpu {

std::vector<float> floats(const Checkpoint& checkpoint, const std::string& name) {
  const Tensor tensor = checkpoint.tensor(name);
  std::vector<float> values(static_cast<std::size_t>(tensor.size()));
  widen(tensor.dtype, tensor.data.bytes, values);
  return values;
}

namespace {

// A norm's factor where the checkpoint holds its offset from one.
std::vector<float> offset_norm(const Checkpoint& checkpoint, const std::string& name) {
  std::vector<float> factors = floats(checkpoint, name);
  for (float& f : factors) f += 1.0f;
  return factors;
}

Linear linear(const Checkpoint& checkpoint, const std::string& module) {
  const bool is_dropped =
      planted(EngineFault::kDroppedLoraPair) && module.ends_with(".layers.1.mlp.down_proj");
  return {.weight = checkpoint.tensor(module + ".weight"),
          .lora = is_dropped ? std::nullopt : checkpoint.lora(module)};
}

AttentionWeights attention_weights(const Checkpoint& checkpoint, const std::string& name) {
  return {.q = linear(checkpoint, name + ".q_proj"),
          .k = linear(checkpoint, name + ".k_proj"),
          .v = linear(checkpoint, name + ".v_proj"),
          .o = linear(checkpoint, name + ".o_proj"),
          .q_norm = offset_norm(checkpoint, name + ".q_norm.weight"),
          .k_norm = offset_norm(checkpoint, name + ".k_norm.weight")};
}

DeltaNetWeights delta_net_weights(const Checkpoint& checkpoint, const std::string& name) {
  const TextConfig& config = checkpoint.config().text;
  const std::vector<float> kernels = floats(checkpoint, name + ".conv1d.weight");
  const auto channels = static_cast<std::size_t>(config.conv_dim());
  const auto width = static_cast<std::size_t>(config.conv_width);
  std::vector<float> taps(kernels.size());
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t j = 0; j < width; ++j) taps[j * channels + c] = kernels[c * width + j];
  }
  std::vector<float> decay = floats(checkpoint, name + ".A_log");
  for (float& a : decay) a = std::exp(a);
  return {.qkv = linear(checkpoint, name + ".in_proj_qkv"),
          .z = linear(checkpoint, name + ".in_proj_z"),
          .a = linear(checkpoint, name + ".in_proj_a"),
          .b = linear(checkpoint, name + ".in_proj_b"),
          .out = linear(checkpoint, name + ".out_proj"),
          .taps = std::move(taps),
          .decay = std::move(decay),
          .dt_bias = floats(checkpoint, name + ".dt_bias"),
          .norm = floats(checkpoint, name + ".norm.weight")};
}

LayerWeights layer_weights(const Checkpoint& checkpoint, std::size_t index) {
  const std::string name = fmt::format("model.language_model.layers.{}", index);
  LayerWeights layer{
      .input_norm = offset_norm(checkpoint, name + ".input_layernorm.weight"),
      .mixer = {},
      .post_norm = offset_norm(checkpoint, name + ".post_attention_layernorm.weight"),
      .gate = linear(checkpoint, name + ".mlp.gate_proj"),
      .up = linear(checkpoint, name + ".mlp.up_proj"),
      .down = linear(checkpoint, name + ".mlp.down_proj")};
  if (checkpoint.config().text.layer_types[index] == LayerType::kFullAttention) {
    layer.mixer = attention_weights(checkpoint, name + ".self_attn");
  } else {
    layer.mixer = delta_net_weights(checkpoint, name + ".linear_attn");
  }
  return layer;
}

}  // namespace

TextWeights load_text_weights(const Checkpoint& checkpoint,
                              std::span<const std::int32_t, 32> label_ids) {
  TextWeights weights;
  weights.embedding = checkpoint.tensor("model.language_model.embed_tokens.weight");
  for (std::size_t i = 0; i < checkpoint.config().text.layer_types.size(); ++i) {
    weights.layers.push_back(layer_weights(checkpoint, i));
  }
  weights.final_norm = offset_norm(checkpoint, "model.language_model.norm.weight");
  weights.head.weight = widened(checkpoint.head_rows(label_ids));
  return weights;
}

}  // namespace jemm::cpu

#include "cpu/vision_weights.h"

#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "cpu/weights.h"

namespace jemm::cpu {
namespace {

LayerNormWeights layer_norm_weights(const Checkpoint& checkpoint, const std::string& name) {
  return {floats(checkpoint, name + ".weight"), floats(checkpoint, name + ".bias")};
}

Linear biased_linear(const Checkpoint& checkpoint, const std::string& module) {
  return {.weight = checkpoint.tensor(module + ".weight"),
          .lora = std::nullopt,
          .bias = floats(checkpoint, module + ".bias")};
}

// Part i of a layer whose outputs are n equal parts.
Linear part_of(const Linear& layer, std::size_t i, std::size_t n) {
  const std::size_t n_bytes = layer.weight.data.bytes.size() / n;
  const std::size_t n_out = layer.bias.size() / n;
  Linear part{.weight = layer.weight, .lora = std::nullopt};
  part.weight.shape[0] = static_cast<std::int64_t>(n_out);
  part.weight.data.bytes = layer.weight.data.bytes.subspan(i * n_bytes, n_bytes);
  part.bias.assign(layer.bias.data() + i * n_out, layer.bias.data() + (i + 1) * n_out);
  return part;
}

VisionBlockWeights block_weights(const Checkpoint& checkpoint, const std::string& name) {
  const Linear qkv = biased_linear(checkpoint, name + ".attn.qkv");
  return {.norm1 = layer_norm_weights(checkpoint, name + ".norm1"),
          .q = part_of(qkv, 0, 3),
          .k = part_of(qkv, 1, 3),
          .v = part_of(qkv, 2, 3),
          .proj = biased_linear(checkpoint, name + ".attn.proj"),
          .norm2 = layer_norm_weights(checkpoint, name + ".norm2"),
          .fc1 = biased_linear(checkpoint, name + ".mlp.linear_fc1"),
          .fc2 = biased_linear(checkpoint, name + ".mlp.linear_fc2")};
}

}  // namespace

VisionWeights load_vision_weights(const Checkpoint& checkpoint) {
  const std::string name = "model.visual";
  VisionWeights weights;
  weights.patch_embed = biased_linear(checkpoint, name + ".patch_embed.proj");
  Tensor& kernel = weights.patch_embed.weight;  // as wide as its step: a linear layer of the patch
  kernel.shape = {kernel.shape[0], kernel.size() / kernel.shape[0]};
  weights.position_grid = floats(checkpoint, name + ".pos_embed.weight");
  for (std::int64_t i = 0; i < checkpoint.config().vision.depth; ++i) {
    weights.blocks.push_back(block_weights(checkpoint, fmt::format("{}.blocks.{}", name, i)));
  }
  weights.merger_norm = layer_norm_weights(checkpoint, name + ".merger.norm");
  weights.merger_fc1 = biased_linear(checkpoint, name + ".merger.linear_fc1");
  weights.merger_fc2 = biased_linear(checkpoint, name + ".merger.linear_fc2");
  return weights;
}

}  // namespace jemm::cpu

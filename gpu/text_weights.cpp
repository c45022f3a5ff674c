// Finds each layer's tensors by name and puts those that are multiplied together side by side.
#include "gpu/text_weights.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <cuda_bf16.h>
#include <fmt/format.h>

#include "base/error.h"
#include "gpu/kernels/fill.h"

namespace jemm::gpu {
namespace {

const std::string kEmbedding = "model.language_model.embed_tokens.weight";

constexpr std::int64_t kOutputStep = 8;  // rows of products start at multiples of 16 bytes
constexpr std::int32_t kRankStep = 16;   // the sum of one matrix instruction
constexpr std::int64_t kLayerStep = 32;  // columns that a warp consumes are of one layer

template <typename Integer>
Integer padded(Integer n, Integer step) {
  return (n + step - 1) / step * step;
}

// A norm's factor where the checkpoint holds its offset from one.
DeviceArray<float> offset_norm(Loader& loader, const std::string& name) {
  std::vector<float> factors = loader.floats(name);
  for (float& f : factors) f += 1.0f;
  return loader.values(factors);
}

using Pairs = std::vector<std::optional<LoraPair>>;

std::int32_t padded_rank(const Pairs& pairs) {
  std::int32_t rank = 0;
  for (const auto& pair : pairs) {
    if (pair) rank = std::max(rank, static_cast<std::int32_t>(pair->a.shape[0]));
  }
  return padded(rank, kRankStep);
}

// The first factors below the weights, the second ones transposed.
template <typename T>
void load_pairs(Loader& loader, const Pairs& pairs, LinearGroup<T>& group) {
  if (group.rank == 0) return;
  std::vector<float> b(static_cast<std::size_t>(group.rank * group.n_out));
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    if (!pairs[p]) continue;
    const Tensor a_values = widened(pairs[p]->a), b_values = widened(pairs[p]->b);
    const auto* from_a = reinterpret_cast<const float*>(a_values.data.bytes.data());
    const auto* from_b = reinterpret_cast<const float*>(b_values.data.bytes.data());
    const std::int64_t first_row = group.n_out + static_cast<std::int64_t>(p) * group.rank;
    loader.values(from_a, a_values.size(), group.w.data() + first_row * group.n_in);
    const std::int64_t own = a_values.shape[0], begin = group.begin(p);
    const auto scale = static_cast<float>(pairs[p]->scale);
    for (std::int64_t o = 0; o < b_values.shape[0]; ++o) {
      for (std::int64_t j = 0; j < own; ++j) {
        b[static_cast<std::size_t>(j * group.n_out + begin + o)] = scale * from_b[o * own + j];
      }
    }
  }
  group.b.reserve(std::ssize(b), "an adapter");
  loader.values(b.data(), std::ssize(b), group.b.data());
}

// Each layer's outputs are padded to a multiple of `step`.
template <typename T>
LinearGroup<T> linear_group(Loader& loader, const std::vector<std::string>& modules,
                            std::int64_t step = 1) {
  LinearGroup<T> group;
  Pairs pairs;
  std::int64_t n_out = 0;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const Shape& shape = loader.shape(modules[i] + ".weight");
    group.n_in = shape[1];
    n_out += padded(shape[0], step);
    group.ends[i] = static_cast<std::int32_t>(n_out);
    pairs.push_back(loader.checkpoint().lora(modules[i]));
  }
  group.n_layers = static_cast<std::int32_t>(modules.size());
  group.n_out = padded(n_out, kOutputStep);
  group.rank = padded_rank(pairs);
  group.width = group.n_out + group.n_layers * group.rank;
  group.w.reserve(group.width * group.n_in, "the weights");
  // What is padded stays zero.
  fill_zero(group.w.data(), group.w.size_bytes(), loader.stream());
  for (std::size_t i = 0; i < modules.size(); ++i) {
    loader.tensor(modules[i] + ".weight", group.w.data() + group.begin(i) * group.n_in);
  }
  load_pairs(loader, pairs, group);
  return group;
}

template <typename T>
DeltaNetWeights<T> delta_net_weights(Loader& loader, const std::string& name) {
  const TextConfig& config = loader.checkpoint().config().text;
  const std::vector<float> kernels = loader.floats(name + ".conv1d.weight");
  const auto channels = static_cast<std::size_t>(config.conv_dim());
  const auto width = static_cast<std::size_t>(config.conv_width);
  std::vector<float> taps(kernels.size());
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t j = 0; j < width; ++j) taps[j * channels + c] = kernels[c * width + j];
  }
  std::vector<float> decay = loader.floats(name + ".A_log");
  for (float& a : decay) a = std::exp(a);
  return {.taps = loader.values(taps),
          .decay = loader.values(decay),
          .time_bias = loader.values(loader.floats(name + ".dt_bias")),
          .norm = loader.values(loader.floats(name + ".norm.weight"))};
}

template <typename T>
LayerWeights<T> layer_weights(Loader& loader, std::size_t index) {
  const std::string name = fmt::format("model.language_model.layers.{}", index);
  LayerWeights<T> layer;
  layer.input_norm = offset_norm(loader, name + ".input_layernorm.weight");
  layer.post_norm = offset_norm(loader, name + ".post_attention_layernorm.weight");
  if (loader.checkpoint().config().text.layer_types[index] == LayerType::kFullAttention) {
    const std::string mixer = name + ".self_attn";
    layer.in = linear_group<T>(loader, {mixer + ".q_proj", mixer + ".k_proj", mixer + ".v_proj"});
    layer.mixer = AttentionWeights<T>{.q_norm = offset_norm(loader, mixer + ".q_norm.weight"),
                                      .k_norm = offset_norm(loader, mixer + ".k_norm.weight")};
    layer.out = linear_group<T>(loader, {mixer + ".o_proj"});
  } else {
    const std::string mixer = name + ".linear_attn";
    layer.in = linear_group<T>(
        loader,
        {mixer + ".in_proj_qkv", mixer + ".in_proj_z", mixer + ".in_proj_b", mixer + ".in_proj_a"},
        kLayerStep);
    layer.mixer = delta_net_weights<T>(loader, mixer);
    layer.out = linear_group<T>(loader, {mixer + ".out_proj"});
  }
  layer.gate_up = linear_group<T>(loader, {name + ".mlp.gate_proj", name + ".mlp.up_proj"});
  layer.down = linear_group<T>(loader, {name + ".mlp.down_proj"});
  return layer;
}

// A synthetic head is made row by row on the device: on the host it would be made whole.
DeviceArray<float> label_rows(Loader& loader, std::span<const std::int32_t, 32> label_ids) {
  const Checkpoint& checkpoint = loader.checkpoint();
  if (!checkpoint.synthetic_seed()) {
    const Tensor rows = widened(checkpoint.head_rows(label_ids));
    DeviceArray<float> device(rows.size(), "the label head");
    loader.values(reinterpret_cast<const float*>(rows.data.bytes.data()), rows.size(),
                  device.data());
    return device;
  }
  const std::string matrix = checkpoint.config().tied_head ? kEmbedding : "lm_head.weight";
  const std::int64_t n_rows = loader.shape(matrix)[0], width = loader.shape(matrix)[1];
  DeviceArray<float> device(std::ssize(label_ids) * width, "the label head");
  for (std::size_t i = 0; i < label_ids.size(); ++i) {
    if (label_ids[i] < 0 || label_ids[i] >= n_rows) {
      fail(ErrorKind::kInput, "label token {} is outside the head's {} rows", label_ids[i], n_rows);
    }
    loader.elements(matrix, label_ids[i] * width, width,
                    device.data() + static_cast<std::int64_t>(i) * width);
  }
  return device;
}

}  // namespace

template <typename T>
TextWeights<T> load_text_weights(Loader& loader, std::span<const std::int32_t, 32> label_ids) {
  const ModelConfig& config = loader.checkpoint().config();
  TextWeights<T> weights;
  weights.embedding.reserve(element_count(loader.shape(kEmbedding)), "the embedding");
  loader.tensor(kEmbedding, weights.embedding.data());
  for (std::size_t i = 0; i < config.text.layer_types.size(); ++i) {
    weights.layers.push_back(layer_weights<T>(loader, i));
  }
  weights.final_norm = offset_norm(loader, "model.language_model.norm.weight");
  weights.head = label_rows(loader, label_ids);
  return weights;
}

template TextWeights<float> load_text_weights(Loader&, std::span<const std::int32_t, 32>);
template TextWeights<__nv_bfloat16> load_text_weights(Loader&, std::span<const std::int32_t, 32>);

}  // namespace jemm::gpu

// Lists the tensors of the language model and the vision tower.
#include "checkpoint/registry.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/labels.h"

namespace jemm {
namespace {

using Role = TensorRole;

class Builder {
 public:
  Builder(const ModelConfig& config, HeadForm head)
      : text_(config.text), vision_(config.vision), tied_head_(config.tied_head), head_(head) {}

  std::vector<TensorInfo> build() {
    const std::string model = "model.language_model";
    add(model + ".embed_tokens.weight", {text_.vocab_size, text_.hidden_size}, Role::kEmbedding);
    add(model + ".norm.weight", {text_.hidden_size}, Role::kOffsetNorm);
    if (!tied_head_) head();
    for (std::size_t i = 0; i < text_.layer_types.size(); ++i) {
      layer(fmt::format("{}.layers.{}", model, i), text_.layer_types[i]);
    }
    vision_tower("model.visual");
    return std::move(tensors_);
  }

 private:
  void head() {
    if (head_ == HeadForm::kWhole) {
      add("lm_head.weight", {text_.vocab_size, text_.hidden_size}, Role::kHead);
    } else {
      add(std::string(kLabelRows), {kLabels.size(), text_.hidden_size}, Role::kHead);
    }
  }
  void add(std::string name, Shape shape, Role role, bool takes_lora = false) {
    tensors_.push_back({std::move(name), std::move(shape), role, takes_lora});
  }
  void text_linear(const std::string& module, std::int64_t out, std::int64_t in) {
    add(module + ".weight", {out, in}, Role::kLinear, true);
  }
  void biased(const std::string& module, Shape shape, Role role) {
    const std::int64_t out = shape[0];
    add(module + ".weight", std::move(shape), role);
    add(module + ".bias", {out}, Role::kBias);
  }

  void layer(const std::string& name, LayerType type) {
    const std::int64_t width = text_.hidden_size;
    add(name + ".input_layernorm.weight", {width}, Role::kOffsetNorm);
    add(name + ".post_attention_layernorm.weight", {width}, Role::kOffsetNorm);
    if (type == LayerType::kFullAttention) {
      full_attention(name + ".self_attn");
    } else {
      linear_attention(name + ".linear_attn");
    }
    text_linear(name + ".mlp.gate_proj", text_.intermediate_size, width);
    text_linear(name + ".mlp.up_proj", text_.intermediate_size, width);
    text_linear(name + ".mlp.down_proj", width, text_.intermediate_size);
  }

  void full_attention(const std::string& name) {
    const std::int64_t width = text_.hidden_size;
    const std::int64_t query_width = text_.n_heads * text_.head_dim;
    const std::int64_t kv_width = text_.n_kv_heads * text_.head_dim;
    text_linear(name + ".q_proj", 2 * query_width, width);  // each head's query, then its gate
    text_linear(name + ".k_proj", kv_width, width);
    text_linear(name + ".v_proj", kv_width, width);
    text_linear(name + ".o_proj", width, query_width);
    add(name + ".q_norm.weight", {text_.head_dim}, Role::kOffsetNorm);
    add(name + ".k_norm.weight", {text_.head_dim}, Role::kOffsetNorm);
  }

  void linear_attention(const std::string& name) {
    const std::int64_t width = text_.hidden_size;
    const std::int64_t n_heads = text_.n_value_heads;
    text_linear(name + ".in_proj_qkv", text_.conv_dim(), width);
    text_linear(name + ".in_proj_z", text_.value_dim(), width);
    text_linear(name + ".in_proj_a", n_heads, width);
    text_linear(name + ".in_proj_b", n_heads, width);
    text_linear(name + ".out_proj", width, text_.value_dim());
    add(name + ".conv1d.weight", {text_.conv_dim(), 1, text_.conv_width}, Role::kConvolution);
    add(name + ".A_log", {n_heads}, Role::kLogDecay);
    add(name + ".dt_bias", {n_heads}, Role::kTimeBias);
    add(name + ".norm.weight", {text_.value_head_dim}, Role::kGatedNorm);
  }

  void vision_tower(const std::string& name) {
    const std::int64_t width = vision_.hidden_size;
    const std::int64_t patch = vision_.patch_size;
    biased(name + ".patch_embed.proj",
           {width, vision_.n_channels, vision_.temporal_patch_size, patch, patch}, Role::kLinear);
    add(name + ".pos_embed.weight", {vision_.n_position_embeddings, width},
        Role::kPositionEmbedding);
    for (std::int64_t i = 0; i < vision_.depth; ++i) {
      vision_block(fmt::format("{}.blocks.{}", name, i));
    }
    const std::int64_t merged = width * vision_.merge_size * vision_.merge_size;
    biased(name + ".merger.norm", {width}, Role::kLayerNorm);
    biased(name + ".merger.linear_fc1", {merged, merged}, Role::kLinear);
    biased(name + ".merger.linear_fc2", {vision_.out_hidden_size, merged}, Role::kLinear);
  }

  void vision_block(const std::string& name) {
    const std::int64_t width = vision_.hidden_size;
    biased(name + ".norm1", {width}, Role::kLayerNorm);
    biased(name + ".attn.qkv", {3 * width, width}, Role::kLinear);
    biased(name + ".attn.proj", {width, width}, Role::kLinear);
    biased(name + ".norm2", {width}, Role::kLayerNorm);
    biased(name + ".mlp.linear_fc1", {vision_.intermediate_size, width}, Role::kLinear);
    biased(name + ".mlp.linear_fc2", {width, vision_.intermediate_size}, Role::kLinear);
  }

  const TextConfig& text_;
  const VisionConfig& vision_;
  bool tied_head_;
  HeadForm head_;
  std::vector<TensorInfo> tensors_;
};

}  // namespace

TensorRegistry::TensorRegistry(const ModelConfig& config, HeadForm head)
    : tensors_(Builder(config, head).build()) {
  std::sort(tensors_.begin(), tensors_.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
}

const TensorInfo* TensorRegistry::find(std::string_view name) const {
  const auto at = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                                   [](const auto& t, std::string_view n) { return t.name < n; });
  return at != tensors_.end() && at->name == name ? &*at : nullptr;
}

std::string_view module_name(const TensorInfo& weight) {
  constexpr std::string_view kSuffix = ".weight";
  return std::string_view(weight.name).substr(0, weight.name.size() - kSuffix.size());
}

}  // namespace jemm

// Names and shapes against the state_dict of Transformers 5.17.0 (made on the meta device).
#include "checkpoint/registry.h"

#include <algorithm>

#include "base/sha256.h"
#include "checkpoint/adapter_config.h"
#include "core/checkpoint/memory_source.h"

namespace jemm {
namespace {

/// "name [shape]" lines, sorted by name; their hash was made in Python from state_dict().
std::string listing_hash(const TensorRegistry& registry) {
  std::string lines;
  for (const TensorInfo& info : registry.tensors()) {
    lines += info.name + " " + shape_text(info.shape) + "\n";
  }
  return sha256_hex(lines);
}

ModelConfig fixture_config(const std::string& name) {
  return parse_model_config(read_fixture(name + "/base/config.json"), name);
}

/// The published 27B sizes; what is left out is Transformers' default.
ModelConfig large_config() {
  return parse_model_config(R"({
    "model_type": "qwen3_5",
    "text_config": {"hidden_size": 5120, "intermediate_size": 17408, "num_hidden_layers": 64,
      "num_attention_heads": 24, "linear_num_value_heads": 48},
    "vision_config": {"out_hidden_size": 5120}
  })",
                            "config.json");
}

TEST_CASE("the registry lists what the model holds") {
  CHECK(TensorRegistry(fixture_config("tiny-a")).tensors().size() == 154);
  CHECK(listing_hash(TensorRegistry(fixture_config("tiny-a"))) ==
        "75ae4d4f4aa59ed96a4721166b4dd8d0ca503f3025d4f741981aa9d4d17eb11f");
  CHECK(listing_hash(TensorRegistry(fixture_config("demo"))) ==
        "67ba4f25a0abfbbe12442f49016c161b3370c082e6c9d33be824a8bd7d03cfa4");
  CHECK(TensorRegistry(large_config()).tensors().size() == 1184);
  CHECK(listing_hash(TensorRegistry(large_config())) ==
        "3d73e8ab79be8b3603368641614b403ab93cc4fd8f5485217c85f8fb31d088ed");
}

TEST_CASE("the 27B model takes 496 pairs, all in the language model") {
  const TensorRegistry registry(large_config());
  CHECK(std::count_if(registry.tensors().begin(), registry.tensors().end(),
                      [](const TensorInfo& t) { return t.takes_lora; }) == 496);
  CHECK_FALSE(registry.find("model.visual.blocks.0.attn.qkv.weight")->takes_lora);
  CHECK_FALSE(registry.find("lm_head.weight")->takes_lora);
  const TensorInfo* gate = registry.find("model.language_model.layers.63.mlp.gate_proj.weight");
  REQUIRE(gate != nullptr);
  CHECK(gate->takes_lora);
  CHECK(module_name(*gate) == "model.language_model.layers.63.mlp.gate_proj");
}

TEST_CASE("the published adapter's pattern selects all of them") {
  const std::string config = R"({"peft_type": "LORA", "r": 16, "lora_alpha": 32, "target_modules":
    "^(?!.*visual).*\\.(q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj|in_proj_qkv|in_proj_z|in_proj_a|in_proj_b|out_proj)$"})";
  const TensorRegistry registry(large_config());
  const auto targets = parse_adapter_config(config, "FILE", registry);
  CHECK(targets.size() == 496);
  CHECK(targets.front().scale == 2.0);
}

TEST_CASE("a tied head is the embedding") {
  ModelConfig config = fixture_config("tiny-a");
  config.tied_head = true;
  const TensorRegistry registry(config);
  CHECK(registry.tensors().size() == 153);
  CHECK(registry.find("lm_head.weight") == nullptr);
}

TEST_CASE("every kind of tensor is known as what it is") {
  const TensorRegistry registry(fixture_config("tiny-a"));
  const auto role = [&](const std::string& name) { return registry.find("model." + name)->role; };
  CHECK(registry.find("lm_head.weight")->role == TensorRole::kHead);
  CHECK(role("language_model.embed_tokens.weight") == TensorRole::kEmbedding);
  CHECK(role("language_model.norm.weight") == TensorRole::kOffsetNorm);
  CHECK(role("language_model.layers.3.self_attn.q_norm.weight") == TensorRole::kOffsetNorm);
  CHECK(role("language_model.layers.0.linear_attn.norm.weight") == TensorRole::kGatedNorm);
  CHECK(role("language_model.layers.0.linear_attn.conv1d.weight") == TensorRole::kConvolution);
  CHECK(role("language_model.layers.0.linear_attn.A_log") == TensorRole::kLogDecay);
  CHECK(role("language_model.layers.0.linear_attn.dt_bias") == TensorRole::kTimeBias);
  CHECK(role("language_model.layers.0.mlp.up_proj.weight") == TensorRole::kLinear);
  CHECK(role("visual.patch_embed.proj.weight") == TensorRole::kLinear);
  CHECK(role("visual.patch_embed.proj.bias") == TensorRole::kBias);
  CHECK(role("visual.pos_embed.weight") == TensorRole::kPositionEmbedding);
  CHECK(role("visual.merger.norm.weight") == TensorRole::kLayerNorm);
  CHECK(role("visual.merger.norm.bias") == TensorRole::kBias);
}

}  // namespace
}  // namespace jemm

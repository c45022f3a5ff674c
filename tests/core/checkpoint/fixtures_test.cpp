// The fixtures open, and hold what Transformers and PEFT read from them.
#include "checkpoint/checkpoint.h"

#include <doctest/doctest.h>

#include <cstring>
#include <string>

namespace jemm {
namespace {

std::unique_ptr<const Checkpoint> open_fixture(const std::string& name) {
  const std::string directory = JEMM_SOURCE_DIR "/fixtures/" + name;
  return open_checkpoint({open_directory(directory + "/base"), open_directory(directory + "/adapter")});
}

TEST_CASE("tiny-a opens from one file") {
  const auto checkpoint = open_fixture("tiny-a");
  const TextConfig& text = checkpoint->config().text;
  CHECK(text.hidden_size == 96);
  CHECK(text.n_layers() == 8);
  CHECK(text.layer_types[3] == LayerType::kFullAttention);
  CHECK(text.rotary_dim == 8);
  CHECK(text.mrope_section == std::array<std::int64_t, 3>{2, 1, 1});
  CHECK(text.rope_theta == 1e7);
  CHECK(checkpoint->config().vision.rope_theta == 1e4);
  CHECK(checkpoint->decision().temperature == 1.3480874159655591);

  const Tensor conv = checkpoint->tensor("model.language_model.layers.0.linear_attn.conv1d.weight");
  CHECK(conv.shape == Shape{160, 1, 4});
  CHECK(conv.dtype == DType::kBf16);
  CHECK(conv.data.bytes.size() == 160 * 4 * 2);

  const auto pair = checkpoint->lora("model.language_model.layers.0.linear_attn.in_proj_a");
  REQUIRE(pair.has_value());
  CHECK(pair->a.shape == Shape{4, 96});
  CHECK(pair->b.shape == Shape{6, 4});
  CHECK(pair->scale == 2.0);
  CHECK_FALSE(checkpoint->lora("model.visual.blocks.0.attn.qkv").has_value());
}

TEST_CASE("demo opens from two shards") {
  const auto checkpoint = open_fixture("demo");
  CHECK(checkpoint->tensor("lm_head.weight").shape == Shape{1280, 128});
  CHECK(checkpoint->tensor("model.language_model.embed_tokens.weight").shape == Shape{1280, 128});
  CHECK(checkpoint->decision().threshold == 0.9);
  const auto pair = checkpoint->lora("model.language_model.layers.3.self_attn.q_proj");
  REQUIRE(pair.has_value());
  CHECK(pair->a.shape == Shape{8, 128});
}

}  // namespace
}  // namespace jemm

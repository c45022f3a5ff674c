// The fixtures open, and hold what Transformers and PEFT read from them.
#include "checkpoint/checkpoint.h"

#include "core/checkpoint/memory_source.h"

namespace jemm {
namespace {

std::unique_ptr<const Checkpoint> open_fixture(const std::string& name) {
  const std::string directory = JEMM_SOURCE_DIR "/fixtures/" + name;
  return open_checkpoint(
      {open_directory(directory + "/base"), open_directory(directory + "/adapter")});
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

TEST_CASE("the formula stands in for weights") {
  EditableCheckpoint files("tiny-a");
  files.base->files.erase("model.safetensors");
  files.adapter->files.erase("adapter_model.safetensors");
  const auto checkpoint = files.open_synthetic(1);
  CHECK(checkpoint->config().text.hidden_size == 96);
  CHECK(checkpoint->decision().temperature == 1.3480874159655591);
  CHECK(checkpoint->lora("model.language_model.layers.0.mlp.up_proj")->scale == 2.0);
  CHECK_FALSE(checkpoint->lora("lm_head").has_value());
}

TEST_CASE("without an adapter all but answering works") {
  EditableCheckpoint files("tiny-a");
  files.adapter = nullptr;
  for (const auto& checkpoint :
       {open_checkpoint({files.base, nullptr}), open_synthetic({files.base, nullptr}, 1)}) {
    CHECK(checkpoint->config().text.hidden_size == 96);
    CHECK(checkpoint->base_files().contains("config.json"));
    CHECK(checkpoint->tensor("lm_head.weight").shape == Shape{1472, 96});
    CHECK_FALSE(checkpoint->lora("model.language_model.layers.0.mlp.up_proj").has_value());
    CHECK(refusal([&] { checkpoint->decision(); }, ErrorKind::kUsage) ==
          "BASE was named without an adapter, which answering needs");
  }
}

TEST_CASE("a missing small file is named") {
  for (const char* file :
       {"adapter_config.json", "decision_config.json", "adapter_model.safetensors"}) {
    EditableCheckpoint files("tiny-a");
    files.adapter->files.erase(file);
    CHECK(refusal([&] { files.open(); }, ErrorKind::kIo) ==
          std::string("cannot open ADAPTER/") + file);
  }
}

TEST_CASE("the fingerprint is stable and covers every byte of configs and weights") {
  for (const char* fixture : {"tiny-a", "demo"}) {
    EditableCheckpoint files(fixture);
    const std::string first = files.open()->fingerprint();
    CHECK(first.size() == 64);
    CHECK(open_fixture(fixture)->fingerprint() == first);  // by content, not by place
    for (auto* source : {files.base.get(), files.adapter.get()}) {
      for (auto& [name, content] : source->files) {
        CAPTURE(name);
        const std::string before = content;
        if (name.ends_with(".json")) {
          content += "\n";
        } else {
          content.back() = static_cast<char>(content.back() ^ 1);
        }
        CHECK(files.open()->fingerprint() != first);
        content = before;
      }
    }
    CHECK(files.open()->fingerprint() == first);
    files.adapter = nullptr;
    CHECK(open_checkpoint({files.base, nullptr})->fingerprint() != first);
  }
}

TEST_CASE("merging a small update into BF16 loses it") {
  // W = [256, -256], s B A = [0.75, 0], x = [1, 1]: the reason why pairs stay apart.
  const float unmerged = 256.0F - 256.0F + 0.75F;
  const float merged =
      bf16_to_float(float_to_bf16(256.0F + 0.75F)) + bf16_to_float(float_to_bf16(-256.0F));
  CHECK(unmerged == 0.75F);
  CHECK(merged == 0.0F);
}

}  // namespace
}  // namespace jemm

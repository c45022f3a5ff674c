// Any text as each of a checkpoint's JSON files, and as a pattern.
#include <cstring>
#include <map>

#include "base/error.h"
#include "checkpoint/adapter_config.h"
#include "checkpoint/base_weights.h"
#include "checkpoint/config.h"
#include "checkpoint/pattern.h"

namespace {

using namespace jemm;

constexpr const char* kSmallConfig = R"({"model_type":"qwen3_5",
  "text_config":{"vocab_size":64,"hidden_size":8,"num_hidden_layers":4},
  "vision_config":{"depth":1,"hidden_size":64,"out_hidden_size":8},
  "image_token_id":1,"video_token_id":2})";

/// Holds the index under test; every shard exists and is empty.
class OneIndex : public FileSource {
 public:
  explicit OneIndex(std::string_view index) : index_(index) {}
  std::string name() const override { return "BASE"; }
  bool contains(std::string_view file) const override { return file != "model.safetensors"; }
  Blob open(std::string_view file) const override {
    static constexpr std::string_view kEmpty("\x02\0\0\0\0\0\0\0{}", 10);
    const std::string_view content = file.ends_with(".json") ? index_ : kEmpty;
    return {std::as_bytes(std::span(content)), nullptr};
  }

 private:
  std::string_view index_;
};

/// All products of an accepted config's sizes must stay far from overflow.
void check_model(const ModelConfig& config) {
  const TensorRegistry registry(config);
  for (const TensorInfo& info : registry.tensors()) {
    __int128 bytes = 4;
    for (const std::int64_t extent : info.shape) bytes *= extent;
    if (bytes <= 0 || bytes >> 60 != 0) __builtin_trap();
    if (registry.find(info.name) != &info) __builtin_trap();
  }
}

void run(std::uint8_t kind, std::string_view text) {
  static const TensorRegistry small(parse_model_config(kSmallConfig, "SMALL"));
  switch (kind % 5) {
    case 0: check_model(parse_model_config(text, "FILE")); break;
    case 1: parse_decision_config(text, "FILE"); break;
    case 2:
      for (const AdapterTarget& target : parse_adapter_config(text, "FILE", small)) {
        if (!target.weight->takes_lora || !(target.scale > 0)) __builtin_trap();
      }
      break;
    case 3: BaseWeights(OneIndex(text), small); break;
    case 4: {
      std::int64_t steps = 10'000'000;
      Pattern(text, "FILE").full_match("model.layers.10.mlp.up_proj", steps);
      break;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  try {
    run(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  } catch (const jemm::Error&) {
  }
  return 0;
}

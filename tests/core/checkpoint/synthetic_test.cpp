// The formula's weights against the reference's (golden/synthetic-hashes.json).
#include "checkpoint/synthetic.h"

#include <cmath>
#include <cstring>

#include "base/sha256.h"
#include "checkpoint/adapter_config.h"
#include "core/checkpoint/memory_source.h"

namespace jemm {
namespace {

/// SHA-256 by tensor name, pairs with their names in adapter files.
std::map<std::string, std::string> hash_all(const EditableCheckpoint& files, std::uint32_t seed) {
  const auto checkpoint = files.open_synthetic(seed);
  std::map<std::string, std::string> hashes;
  const TensorRegistry registry(checkpoint->config());
  for (const TensorInfo& info : registry.tensors()) {
    const Tensor tensor = checkpoint->tensor(info.name);
    CHECK(tensor.dtype == DType::kBf16);
    CHECK(tensor.shape == info.shape);
    hashes[info.name] = sha256_hex(tensor.data.bytes);
    if (!info.takes_lora) continue;
    const auto pair = checkpoint->lora(module_name(info));
    REQUIRE(pair.has_value());
    const std::string_view module = module_name(info);
    hashes[fmt::format("{}{}{}", kAdapterPrefix, module, kLoraA)] = sha256_hex(pair->a.data.bytes);
    hashes[fmt::format("{}{}{}", kAdapterPrefix, module, kLoraB)] = sha256_hex(pair->b.data.bytes);
  }
  return hashes;
}

TEST_CASE("every tensor is bit-equal to the reference's") {
  const EditableCheckpoint files("tiny-a");
  const nlohmann::json golden = read_golden("synthetic-hashes.json");
  for (const auto& [seed, expected] : golden["all"].items()) {
    CAPTURE(seed);
    const auto hashes = hash_all(files, static_cast<std::uint32_t>(std::stoul(seed)));
    if (seed == "1") {
      for (const auto& [name, hash] : golden["tensors"].items()) {
        CAPTURE(name);
        CHECK(hashes.at(name) == hash.get<std::string>());
      }
    }
    std::string lines;
    for (const auto& [name, hash] : hashes) lines += hash + " " + name + "\n";
    CHECK(hashes.size() == expected["tensors"].get<std::size_t>());
    CHECK(sha256_hex(lines) == expected["sha256"].get<std::string>());
  }
}

TEST_CASE("a large tensor, made in parts, is the formula's everywhere") {
  const TensorInfo info{"model.language_model.embed_tokens.weight", {3000, 1001},
                        TensorRole::kEmbedding, false};
  const Tensor tensor = synthetic_tensor(info, 5);
  std::uint32_t s = 0x811c9dc5U;
  for (const char c : info.name) s = (s ^ static_cast<unsigned char>(c)) * 0x01000193U;
  const std::uint32_t lead = synthetic_mix(s ^ 5U);
  const std::size_t count = 3000 * 1001;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double u = synthetic_mix(static_cast<std::uint32_t>(i) ^ lead) / 4294967296.0;
    std::uint16_t bits = 0;
    std::memcpy(&bits, tensor.data.bytes.data() + 2 * i, sizeof bits);
    if (bits != float_to_bf16(static_cast<float>((2 * u - 1) * std::sqrt(3.0)))) ++wrong;
  }
  CHECK(tensor.data.bytes.size() == 2 * count);
  CHECK(wrong == 0);
}

TEST_CASE("the fingerprint follows the formula's inputs") {
  EditableCheckpoint files("tiny-a");
  const std::string first = files.open_synthetic(1)->fingerprint();
  CHECK(first.size() == 64);
  CHECK(files.open_synthetic(1)->fingerprint() == first);
  CHECK(files.open_synthetic(2)->fingerprint() != first);
  files.base->files.erase("model.safetensors");  // weights are not looked at
  CHECK(files.open_synthetic(1)->fingerprint() == first);
  edit_json(files.adapter->files["decision_config.json"], [](auto& j) { j["temperature"] = 2; });
  CHECK(files.open_synthetic(1)->fingerprint() != first);
}

}  // namespace
}  // namespace jemm

// The base's files: one or several, whole or not.
#include "checkpoint/base_weights.h"

#include "core/checkpoint/memory_source.h"

namespace jemm {
namespace {

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kFirst = "model-00001-of-00002.safetensors";
constexpr const char* kSecond = "model-00002-of-00002.safetensors";
constexpr const char* kNorm = "model.language_model.norm.weight";

std::string why(const EditableCheckpoint& checkpoint) {
  return refusal([&] { checkpoint.open(); });
}

void rename_shard(EditableCheckpoint& checkpoint, const std::string& from, const std::string& to) {
  checkpoint.base->files[to] = checkpoint.base->files.at(from);
  checkpoint.base->files.erase(from);
  edit_json(checkpoint.base->files[kIndex], [&](auto& j) {
    for (auto& shard : j["weight_map"]) {
      if (shard == from) shard = to;
    }
  });
}

TEST_CASE("no weights at all") {
  EditableCheckpoint checkpoint("tiny-a");
  checkpoint.base->files.erase(kSingle);
  CHECK(why(checkpoint) == "BASE holds neither model.safetensors nor model.safetensors.index.json");
}

TEST_CASE("missing and unexpected tensors are named, mtp is passed over") {
  EditableCheckpoint checkpoint("tiny-a");
  std::string& file = checkpoint.base->files[kSingle];
  edit_safetensors(file, [](auto& p) { p.add("mtp.layers.0.weight", "I8", {3}, "abc"); });
  CHECK_NOTHROW(checkpoint.open());
  edit_safetensors(file, [](auto& p) {
    p.remove(kNorm);
    p.remove("lm_head.weight");
    p.add("model.language_model.layers.8.x", "F32", {1}, "1234");
  });
  CHECK(why(checkpoint) == "BASE: 2 tensors are missing: \"lm_head.weight\", \"" +
                               std::string(kNorm) +
                               "\"; 1 tensors are unexpected: \"model.language_model.layers.8.x\"");
}

TEST_CASE("a head beside a tied embedding is unexpected, without it all is well") {
  EditableCheckpoint checkpoint("tiny-a");
  edit_json(checkpoint.base->files["config.json"],
            [](auto& j) { j["tie_word_embeddings"] = true; });
  CHECK(why(checkpoint) == "BASE: 1 tensors are unexpected: \"lm_head.weight\"");
  edit_safetensors(checkpoint.base->files[kSingle], [](auto& p) { p.remove("lm_head.weight"); });
  CHECK(checkpoint.open()->config().tied_head);
}

TEST_CASE("shapes and types are checked") {
  EditableCheckpoint checkpoint("tiny-a");
  const std::string whole = checkpoint.base->files[kSingle];
  edit_safetensors(checkpoint.base->files[kSingle], [](auto& p) {
    p.header[kNorm]["shape"] = {48, 2};
  });
  CHECK(why(checkpoint) ==
        "BASE/model.safetensors: tensor model.language_model.norm.weight has shape "
        "[48, 2], but the config asks for [96]");
  checkpoint.base->files[kSingle] = whole;
  edit_safetensors(checkpoint.base->files[kSingle],
                   [](auto& p) { p.header[kNorm]["dtype"] = "I16"; });
  CHECK(why(checkpoint) ==
        "BASE/model.safetensors: tensor \"model.language_model.norm.weight\": weights "
        "must be BF16, F16 or F32, not I16");
  checkpoint.base->files[kSingle] = whole;
  edit_safetensors(checkpoint.base->files[kSingle], [](auto& p) {
    p.header[kNorm]["dtype"] = "F16";  // single tensors of another type are as published
    p.remove("model.language_model.layers.0.linear_attn.A_log");
    p.add("model.language_model.layers.0.linear_attn.A_log", "F32", {6}, std::string(24, '\0'));
  });
  const auto opened = checkpoint.open();
  CHECK(opened->tensor(kNorm).dtype == DType::kF16);
  CHECK(opened->tensor("model.language_model.layers.0.linear_attn.A_log").dtype == DType::kF32);
  CHECK(refusal([&] { opened->tensor("model.x"); }) == "the model has no tensor \"model.x\"");
}

TEST_CASE("one file wins over an index, as in Transformers") {
  EditableCheckpoint checkpoint("tiny-a");
  checkpoint.base->files[kIndex] = "not even JSON";
  CHECK_NOTHROW(checkpoint.open());
}

TEST_CASE("an absent shard is named") {
  EditableCheckpoint checkpoint("demo");
  checkpoint.base->files.erase(kSecond);
  CHECK(why(checkpoint) ==
        "BASE/model.safetensors.index.json: 1 of 2 shards are missing: "
        "\"model-00002-of-00002.safetensors\"");
  checkpoint.base->files.erase(kFirst);
  CHECK(holds(why(checkpoint),
              "2 of 2 shards are missing: \"model-00001-of-00002.safetensors\", \"model-0"));
}

TEST_CASE("a cut shard is named") {
  EditableCheckpoint checkpoint("demo");
  std::string& shard = checkpoint.base->files[kSecond];
  shard.resize(shard.size() - 1);
  CHECK(holds(why(checkpoint), "BASE/model-00002-of-00002.safetensors: "));
  shard.resize(5);
  CHECK(holds(why(checkpoint), "BASE/model-00002-of-00002.safetensors: 5 bytes are too few"));
}

TEST_CASE("the index must say where tensors lie") {
  EditableCheckpoint checkpoint("demo");
  std::string& index = checkpoint.base->files[kIndex];
  const std::string whole = index;
  edit_json(index, [](auto& j) { j["weight_map"][kNorm] = kFirst; });
  REQUIRE(index != whole);
  CHECK(why(checkpoint) ==
        "BASE/model.safetensors.index.json: 1 tensors are not in the shards named for "
        "them: \"model.language_model.norm.weight\"");
  index = whole;
  edit_json(index, [](auto& j) { j["weight_map"]["ghost"] = kFirst; });
  CHECK(holds(why(checkpoint), "1 tensors are not in the shards named for them: \"ghost\""));
  index = whole;
  edit_json(index, [](auto& j) { j.erase("weight_map"); });
  CHECK(why(checkpoint) == "BASE/model.safetensors.index.json: weight_map is missing");
  edit_json(index, [](auto& j) { j["weight_map"] = nlohmann::json::object(); });
  CHECK(why(checkpoint) == "BASE/model.safetensors.index.json: weight_map is empty");
  edit_json(index, [](auto& j) { j["weight_map"] = {{"a", 5}}; });
  CHECK(why(checkpoint) ==
        "BASE/model.safetensors.index.json: weight_map: a must be a string, found 5");
}

TEST_CASE("shards are files of the same directory") {
  for (const std::string name :
       {"../model.safetensors", "/etc/x", "sub/x", "a\\b", "", ".", ".."}) {
    CAPTURE(name);
    EditableCheckpoint checkpoint("demo");
    edit_json(checkpoint.base->files[kIndex], [&](auto& j) { j["weight_map"][kNorm] = name; });
    CHECK(holds(why(checkpoint), "which is no file of the same directory"));
  }
  EditableCheckpoint checkpoint("demo");
  edit_json(checkpoint.base->files[kIndex],
            [](auto& j) { j["weight_map"][kNorm] = std::string("a\0b", 3); });
  CHECK(why(checkpoint) ==
        "BASE/model.safetensors.index.json: weight_map: "
        "\"model.language_model.norm.weight\" names \"a\\x00b\", which is no file of the "
        "same directory");
}

TEST_CASE("a tensor in two shards") {
  EditableCheckpoint checkpoint("demo");
  edit_safetensors(checkpoint.base->files[kFirst],
                   [](auto& p) { p.add(kNorm, "BF16", {128}, std::string(256, '\0')); });
  CHECK(why(checkpoint) ==
        "BASE: 1 tensors are in two shards: \"model.language_model.norm.weight\"");
}

TEST_CASE("a tensor that the index leaves out but a shard holds is loaded") {
  EditableCheckpoint checkpoint("demo");
  edit_json(checkpoint.base->files[kIndex], [](auto& j) { j["weight_map"].erase(kNorm); });
  CHECK_NOTHROW(checkpoint.open());
}

TEST_CASE("odd names load, surplus shards are passed over") {
  EditableCheckpoint checkpoint("demo");
  rename_shard(checkpoint, kFirst, "model.safetensors-00001-of-00002.safetensors");
  checkpoint.base->files["model-00003-of-00003.safetensors"] = "stale";
  const auto opened = checkpoint.open();
  CHECK(opened->tensor(kNorm).shape == Shape{128});
}

}  // namespace
}  // namespace jemm

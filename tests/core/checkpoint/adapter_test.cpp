// The adapter's config and pairs; selections, ranks and scales as PEFT 0.21 makes them.
#include "checkpoint/adapter_weights.h"

#include <cmath>

#include "core/checkpoint/memory_source.h"

namespace jemm {
namespace {

constexpr const char* kConfig = "adapter_config.json";
constexpr const char* kWeights = "adapter_model.safetensors";
const std::string kModule = "model.language_model.layers.0.linear_attn.in_proj_a";
const std::string kTensor = "base_model.model." + kModule;

using Edit = std::function<void(nlohmann::json&)>;

/// The synthetic source reads the config alone.
std::vector<AdapterTarget> targets(const TensorRegistry& registry, const Edit& edit) {
  std::string text = read_fixture("tiny-a/adapter/adapter_config.json");
  edit_json(text, edit);
  return parse_adapter_config(text, "FILE", registry);
}

const TensorRegistry& tiny_registry() {
  static const TensorRegistry registry(
      parse_model_config(read_fixture("tiny-a/base/config.json"), "FILE"));
  return registry;
}

const AdapterTarget& target(const std::vector<AdapterTarget>& all, const std::string& module) {
  const AdapterTarget* found = find_target(all, module);
  REQUIRE(found != nullptr);
  return *found;
}

std::string config_refusal(const Edit& edit) {
  return refusal([&] { targets(tiny_registry(), edit); });
}

std::string weights_refusal(const std::function<void(SafetensorsParts&)>& edit) {
  EditableCheckpoint checkpoint("tiny-a");
  edit_safetensors(checkpoint.adapter->files[kWeights], edit);
  return refusal([&] { checkpoint.open(); });
}

TEST_CASE("target_modules selects as PEFT does") {
  const auto count = [](const nlohmann::json& selection) {
    return targets(tiny_registry(), [&](auto& j) { j["target_modules"] = selection; }).size();
  };
  CHECK(targets(tiny_registry(), [](auto&) {}).size() == 62);  // 6 x 8 + 2 x 7
  CHECK(count({"q_proj"}) == 2);
  CHECK(count({"self_attn.q_proj", "down_proj"}) == 10);
  CHECK(count({"model.language_model.layers.3.self_attn.q_proj"}) == 1);
  CHECK(count({"in_proj_a", "in_proj_b"}) == 12);
  CHECK(count(".*layers\\.[01]\\.mlp\\.up_proj") == 2);
  CHECK(config_refusal([](auto& j) { j["target_modules"] = {"proj"}; }) ==
        "FILE: target_modules selects modules where pairs are not supported: "
        "\"model.visual.blocks.0.attn.proj\", \"model.visual.blocks.1.attn.proj\", "
        "\"model.visual.blocks.2.attn.proj\", \"model.visual.patch_embed.proj\"");
  CHECK(config_refusal([](auto& j) { j["target_modules"] = {"roj"}; }) ==
        "FILE: target_modules selects no layer of the model");
  CHECK(holds(config_refusal([](auto& j) { j["target_modules"] = {"lm_head"}; }),
              "not supported: \"lm_head\""));
  CHECK(holds(config_refusal([](auto& j) { j["target_modules"] = {"mlp"}; }),
              "\"model.language_model.layers.0.mlp\""));
  CHECK(holds(config_refusal([](auto& j) { j["target_modules"] = ".*norm"; }),
              "\"model.language_model.norm\""));
  CHECK(holds(config_refusal([](auto& j) { j["target_modules"] = "all-linear"; }),
              "\"all-linear\" is not supported"));
  CHECK(holds(config_refusal([](auto& j) { j["target_modules"] = "q_proj"; }), "selects no layer"));
  CHECK(holds(config_refusal([](auto& j) { j["target_modules"] = "(?i)q"; }),
              "FILE: the pattern \"(?i)q\" holds"));
  CHECK(config_refusal([](auto& j) { j["target_modules"] = nullptr; }) ==
        "FILE: target_modules is missing");
  CHECK(config_refusal([](auto& j) { j["target_modules"] = {5}; }) ==
        "FILE: target_modules may not hold 5");
  CHECK(config_refusal([](auto& j) { j["target_modules"] = 5; }) ==
        "FILE: target_modules must be a string or an array");
}

TEST_CASE("scales are those that PEFT computes") {
  const auto scale = [](const Edit& edit) {
    const auto all = targets(tiny_registry(), edit);
    return target(all, kModule).scale;
  };
  CHECK(scale([](auto&) {}) == 2.0);
  CHECK(scale([](auto& j) { j["use_rslora"] = true; }) == 4.0);
  CHECK(scale([](auto& j) {
          j["r"] = 3;
          j["use_rslora"] = true;
        }) == 8 / std::sqrt(3.0));
  CHECK(scale([](auto& j) {
          j.erase("lora_alpha");
          j.erase("r");
        }) == 1.0);
  CHECK(scale([](auto& j) { j["alpha_pattern"] = {{"proj_a", 3}}; }) == 2.0);  // no part of a name
  CHECK(scale([](auto& j) {
          j["alpha_pattern"] = {
              {R"(model.language_model.layers.[0-3].linear_attn.in_proj_(a|b))", 3.5}};
        }) == 0.875);
  CHECK(scale([](auto& j) { j["rank_pattern"] = {{"in_proj_a", 2}}; }) == 4.0);
}

TEST_CASE("of several patterns the first in the file decides") {
  std::string text = read_fixture("tiny-a/adapter/adapter_config.json");
  const auto with = [&](const std::string& patterns) {
    std::string edited = text;
    const std::string empty = "\"alpha_pattern\": {}";
    edited.replace(edited.find(empty), empty.size(), "\"alpha_pattern\": {" + patterns + "}");
    const auto all = parse_adapter_config(edited, "FILE", tiny_registry());
    return target(all, kModule).scale;
  };
  CHECK(with(R"("linear_attn.in_proj_a": 20, "in_proj_a": 3)") == 5.0);
  CHECK(with(R"("in_proj_a": 3, "linear_attn.in_proj_a": 20)") == 0.75);
  CHECK(with(R"("in_proj_a": 3, "linear_attn.in_proj_a": 20, "in_proj_a": 4)") ==
        1.0);  // as a dict
}

TEST_CASE("ranks follow rank_pattern") {
  const auto all = targets(tiny_registry(), [](auto& j) {
    j["rank_pattern"] = {{"in_proj_a", 2}};
  });
  CHECK(target(all, kModule).a_shape() == Shape{2, 96});
  CHECK(target(all, kModule).b_shape() == Shape{6, 2});
  CHECK(target(all, "model.language_model.layers.0.linear_attn.in_proj_b").rank == 4);

  EditableCheckpoint checkpoint("tiny-a");
  edit_json(checkpoint.adapter->files[kConfig], [](auto& j) {
    j["rank_pattern"] = {{"0.linear_attn.in_proj_a", 2}};
  });
  CHECK(holds(refusal([&] { checkpoint.open(); }),
              "has shape [4, 96], but its layer and rank ask for [2, 96]"));
  edit_safetensors(checkpoint.adapter->files[kWeights], [](auto& p) {
    p.remove(kTensor + ".lora_A.weight");
    p.remove(kTensor + ".lora_B.weight");
    p.add(kTensor + ".lora_A.weight", "F32", {2, 96}, std::string(768, '\0'));
    p.add(kTensor + ".lora_B.weight", "F32", {6, 2}, std::string(48, '\0'));
  });
  CHECK(checkpoint.open()->lora(kModule)->scale == 4.0);
}

TEST_CASE("the fields that PEFT 0.21 writes pass at their defaults") {
  CHECK_NOTHROW(EditableCheckpoint("demo").open());
  CHECK_NOTHROW(targets(tiny_registry(), [](auto& j) {
    j["lora_dropout"] = 0.1;
    j["inference_mode"] = false;
    j["task_type"] = "CAUSAL_LM";
    j["init_lora_weights"] = "gaussian";
    j["revision"] = "main";
    j["peft_version"] = "0.22.0";
    j["new_field_of_a_later_version"] = nullptr;
    j["another"] = false;
  }));
}

TEST_CASE("a field that changes the maths is refused by name") {
  const auto with = [](const char* key, const nlohmann::json& value) {
    CAPTURE(key);
    return config_refusal([&](auto& j) { j[key] = value; });
  };
  CHECK(with("use_dora", true) == "FILE: use_dora is not supported, found true");
  CHECK(with("modules_to_save", {"lm_head"}) ==
        "FILE: modules_to_save is not supported, found an array");
  for (const auto& [key, value] : std::vector<std::pair<const char*, nlohmann::json>>{
           {"fan_in_fan_out", true},
           {"layers_to_transform", {0}},
           {"layers_pattern", "layers"},
           {"lora_bias", true},
           {"target_parameters", {"w"}},
           {"trainable_token_indices", {1}},
           {"exclude_modules", {"q_proj"}},
           {"loftq_config", {{"loftq_bits", 4}}},
           {"eva_config", {{"rho", 2.0}}},
           {"corda_config", {{"verbose", true}}},
           {"lora_ga_config", {{"scale", "stable"}}},
           {"layer_replication", {{0, 1}}},
           {"megatron_config", {{"x", 1}}},
           {"alora_invocation_tokens", {1}},
           {"use_qalora", true},
           {"use_bdlora", {{"nblocks", 1}}},
           {"kasa_config", {{"beta", 1}}},
           {"velora_config", {{"scale", 1}}},
           {"arrow_config", {{"top_k", 1}}},
           {"monteclora_config", {{"buffer_size", 1}}},
           {"ensure_weight_tying", true},
           {"use_a_method_of_next_year", true},
           {"unknown_number", 1}}) {
    CHECK(holds(with(key, value), std::string("FILE: ") + key + " is not supported"));
  }
  CHECK(with("bias", "all") == "FILE: bias \"all\" is not supported");
  CHECK(with("bias", nullptr) == "FILE: bias null is not supported");
  CHECK(with("peft_type", "LOHA") == "FILE: peft_type \"LOHA\" is not supported");
  CHECK(config_refusal([](auto& j) { j.erase("peft_type"); }) == "FILE: peft_type is missing");
  CHECK(with("init_lora_weights", "pissa") == "FILE: init_lora_weights \"pissa\" is not supported");
  CHECK(with("init_lora_weights", "loftq") == "FILE: init_lora_weights \"loftq\" is not supported");
  CHECK(with("task_type", "SEQ_CLS") == "FILE: task_type \"SEQ_CLS\" is not supported");
  CHECK(holds(with("r", 0), "FILE: r must be an integer from 1 to 65536, found 0"));
  CHECK(holds(with("lora_alpha", 0), "FILE: lora_alpha must be positive and finite, found 0"));
  CHECK(holds(with("use_rslora", 1), "FILE: use_rslora must be true or false, found 1"));
  CHECK(holds(with("rank_pattern", {{"q_proj", 0}}),
              "FILE: rank_pattern: q_proj must be an integer from 1"));
  CHECK(holds(with("alpha_pattern", {{"q_proj", "x"}}),
              "FILE: alpha_pattern: q_proj must be a number"));
  CHECK(holds(with("alpha_pattern", {{"q_(proj", 1}}), "FILE: alpha_pattern: the pattern"));
  CHECK(with("new\nline", true) == "FILE: \"new\\x0aline\" is not supported, found true");
  nlohmann::json many = nlohmann::json::object();
  for (int i = 0; i < 2001; ++i) many[std::to_string(i)] = 1;
  CHECK(with("rank_pattern", many) == "FILE: rank_pattern holds too many patterns");
  CHECK(holds(with("rank_pattern", 5), "FILE: rank_pattern must be an object, found 5"));
}

TEST_CASE("every tensor of the adapter must be used") {
  CHECK(weights_refusal([](auto& p) {
          p.add("base_model.model.model.language_model.layers.0.foo.lora_A.weight", "F32", {4, 96},
                std::string(1536, '\0'));
        }) ==
        "ADAPTER/adapter_model.safetensors: 1 tensors belong to no layer that the adapter's config "
        "selects: \"base_model.model.model.language_model.layers.0.foo.lora_A.weight\"");
  CHECK(holds(weights_refusal(
                  [](auto& p) { p.add(kTensor + ".lora_magnitude_vector", "F32", {1}, "1234"); }),
              "in_proj_a.lora_magnitude_vector\""));
  CHECK(holds(weights_refusal([](auto& p) {
                p.add("base_model.model.model.visual.blocks.0.attn.qkv.lora_A.weight", "F32", {1},
                      "1234");
              }),
              "1 tensors belong to no layer"));
  CHECK(holds(
      weights_refusal([](auto& p) { p.add("base_model.model.lora_A.weight", "F32", {1}, "1234"); }),
      "belong to no layer"));
  CHECK(holds(weights_refusal(
                  [](auto& p) { p.add(kTensor + ".lora_A.default.weight", "F32", {1}, "1234"); }),
              "belong to no layer"));

  // PEFT passes over the pairs of layers that its config does not select.
  EditableCheckpoint checkpoint("tiny-a");
  edit_json(checkpoint.adapter->files[kConfig], [](auto& j) { j["target_modules"] = {"q_proj"}; });
  CHECK(holds(refusal([&] { checkpoint.open(); }), ": 120 tensors belong to no layer"));
}

TEST_CASE("an adapter of the text-only model") {
  // PEFT 0.21 warns of missing keys and answers as the base model.
  const std::string why = weights_refusal([](auto& p) {
    nlohmann::json renamed = nlohmann::json::object();
    for (const auto& [name, info] : p.header.items()) {
      std::string other = name;
      const std::string part = "model.language_model.";
      if (const auto at = other.find(part); at != std::string::npos)
        other.replace(at, part.size(), "model.");
      renamed[other] = info;
    }
    p.header = renamed;
  });
  CHECK(holds(
      why,
      "124 tensors belong to no layer that the adapter's config selects (the adapter was saved "
      "for the text-only model, whose layers have other names)"));
}

TEST_CASE("pairs must be whole and fit") {
  CHECK(weights_refusal([](auto& p) { p.remove(kTensor + ".lora_B.weight"); }) ==
        "ADAPTER/adapter_model.safetensors: 1 of 124 tensors are missing: \"" + kTensor +
            ".lora_B.weight\"");
  CHECK(holds(weights_refusal([](auto& p) {
                p.remove(kTensor + ".lora_A.weight");
                p.remove(kTensor + ".lora_B.weight");
              }),
              "2 of 124 tensors are missing"));
  CHECK(weights_refusal([](auto& p) {
          p.header[kTensor + ".lora_A.weight"]["shape"] = {96, 4};
        }) == "ADAPTER/adapter_model.safetensors: tensor " + kTensor +
                  ".lora_A.weight has shape [96, 4], but its layer and rank ask for [4, 96]");
  CHECK(
      holds(weights_refusal([](auto& p) { p.header[kTensor + ".lora_A.weight"]["dtype"] = "I32"; }),
            "weights must be BF16, F16 or F32, not I32"));
  CHECK(holds(weights_refusal([](auto& p) { p = SafetensorsParts(); }),
              "124 of 124 tensors are missing"));
}

TEST_CASE("BF16 and F16 pairs are widened, as by PEFT") {
  for (const auto& [dtype, one] :
       {std::pair("BF16", std::string("\x80\x3F")), std::pair("F16", std::string("\0\x3C", 2))}) {
    EditableCheckpoint checkpoint("tiny-a");
    edit_safetensors(checkpoint.adapter->files[kWeights], [&](auto& p) {
      p.remove(kTensor + ".lora_B.weight");
      std::string bytes;
      for (int i = 0; i < 24; ++i) bytes += one;
      p.add(kTensor + ".lora_B.weight", dtype, {6, 4}, bytes);
    });
    const auto pair = checkpoint.open()->lora(kModule);
    REQUIRE(pair.has_value());
    CHECK(pair->b.dtype == DType::kF32);
    REQUIRE(pair->b.data.bytes.size() == 96);
    float last = 0;
    std::memcpy(&last, pair->b.data.bytes.data() + 92, sizeof last);
    CHECK(last == 1.0F);
  }
}

}  // namespace
}  // namespace jemm

// config.json and decision_config.json; expected values as Transformers 5.17.0's Qwen3_5Config
// reads.
#include "checkpoint/config.h"

#include <limits>

#include "core/checkpoint/memory_source.h"

namespace jemm {
namespace {

using Edit = std::function<void(nlohmann::json&)>;

ModelConfig edited(const Edit& edit) {
  std::string text = read_fixture("tiny-a/base/config.json");
  edit_json(text, edit);
  return parse_model_config(text, "FILE");
}
std::string why(const Edit& edit) {
  return refusal([&] { edited(edit); });
}

TEST_CASE("absent keys take Transformers' defaults") {
  const ModelConfig config = parse_model_config(
      R"({"model_type": "qwen3_5", "vision_config": {"out_hidden_size": 4096}})", "FILE");
  const TextConfig& text = config.text;
  CHECK(text.vocab_size == 248320);
  CHECK(text.hidden_size == 4096);
  CHECK(text.intermediate_size == 12288);
  CHECK(text.n_layers() == 32);
  CHECK(text.layer_types[2] == LayerType::kLinearAttention);
  CHECK(text.layer_types[31] == LayerType::kFullAttention);
  CHECK(text.rms_norm_eps == 1e-6);
  CHECK(text.n_heads == 16);
  CHECK(text.n_kv_heads == 4);
  CHECK(text.head_dim == 256);
  CHECK(text.rotary_dim == 64);
  CHECK(text.rope_theta == 10000);
  CHECK(text.mrope_section == std::array<std::int64_t, 3>{11, 11, 10});
  CHECK(text.n_key_heads == 16);
  CHECK(text.n_value_heads == 32);
  CHECK(text.key_head_dim == 128);
  CHECK(text.value_head_dim == 128);
  CHECK(text.conv_width == 4);
  CHECK(text.conv_dim() == 2 * 2048 + 4096);
  const VisionConfig& vision = config.vision;
  CHECK(vision.depth == 27);
  CHECK(vision.hidden_size == 1152);
  CHECK(vision.intermediate_size == 4304);
  CHECK(vision.n_heads == 16);
  CHECK(vision.n_channels == 3);
  CHECK(vision.patch_size == 16);
  CHECK(vision.temporal_patch_size == 2);
  CHECK(vision.merge_size == 2);
  CHECK(vision.n_position_embeddings == 2304);
  CHECK(vision.rope_theta == 10000);
  CHECK_FALSE(config.tied_head);
  CHECK(config.image_token_id == 248056);
  CHECK(config.video_token_id == 248057);
}

TEST_CASE("older ways to write the rotary settings") {
  const auto text = [](const Edit& edit) {
    return edited([&](auto& j) { edit(j["text_config"]); }).text;
  };
  CHECK(text([](auto& t) {
          t.erase("rope_parameters");
          t["rope_theta"] = 5e5;
          t["head_dim"] = 256;
        }).rope_theta == 5e5);
  CHECK(text([](auto& t) { t["rope_theta"] = 5e5; }).rope_theta == 1e7);  // the inner one wins
  CHECK(text([](auto& t) { t["rope_parameters"].erase("rope_theta"); }).rope_theta == 10000);
  CHECK(text([](auto& t) {
          t["rope_parameters"].erase("rope_theta");
          t["rope_theta"] = 7;
        }).rope_theta == 7);
  const TextConfig scaled = text([](auto& t) {
    t["rope_scaling"] = {{"type", "default"}, {"rope_theta", 3.0}, {"mrope_section", {1, 1, 2}}};
  });
  CHECK(scaled.rope_theta == 3);
  CHECK(scaled.mrope_section == std::array<std::int64_t, 3>{1, 1, 2});
  CHECK(text([](auto& t) { t["partial_rotary_factor"] = 0.5; }).rotary_dim == 8);  // inner wins
  CHECK(text([](auto& t) {
          t["partial_rotary_factor"] = 0.5;
          t["rope_parameters"].erase("partial_rotary_factor");
          t["rope_parameters"]["mrope_section"] = {4, 2, 2};
        }).rotary_dim == 16);
  CHECK(edited([](auto& j) { j["vision_config"].erase("rope_parameters"); }).vision.rope_theta ==
        10000);
  CHECK(edited([](auto& j) {
          j["vision_config"]["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 7.0}};
        }).vision.rope_theta == 7);
}

TEST_CASE("layer types by interval") {
  const ModelConfig config = edited([](auto& j) {
    j["text_config"].erase("layer_types");
    j["text_config"]["full_attention_interval"] = 2;
  });
  CHECK(config.text.layer_types[0] == LayerType::kLinearAttention);
  CHECK(config.text.layer_types[1] == LayerType::kFullAttention);
  CHECK(config.text.layer_types[7] == LayerType::kFullAttention);
  CHECK(edited([](auto& j) { j["text_config"]["layer_types"] = nullptr; }).text.layer_types ==
        edited([](auto&) {}).text.layer_types);
}

TEST_CASE("what else may be written") {
  CHECK(edited([](auto& j) { j["tie_word_embeddings"] = true; }).tied_head);
  // The outer flag alone ties.
  CHECK_FALSE(edited([](auto& j) { j["text_config"]["tie_word_embeddings"] = true; }).tied_head);
  CHECK(edited([](auto& j) {
          j["vision_config"].erase("num_heads");
          j["vision_config"]["num_attention_heads"] = 2;
        }).vision.n_heads == 2);
  CHECK_NOTHROW(edited([](auto& j) { j["vision_config"]["model_type"] = "qwen3_5"; }));
  CHECK_NOTHROW(edited(
      [](auto& j) { j["vision_config"]["deepstack_visual_indexes"] = nlohmann::json::array(); }));
  CHECK_NOTHROW(edited([](auto& j) { j["text_config"]["mamba_ssm_dtype"] = "float32"; }));
  CHECK_NOTHROW(edited([](auto& j) { j["text_config"]["attn_output_gate"] = true; }));
  CHECK_NOTHROW(edited([](auto& j) { j["quantization_config"] = nullptr; }));
  CHECK_NOTHROW(edited([](auto& j) { j.erase("architectures"); }));
}

TEST_CASE("other models and other maths are refused by name") {
  const auto text = [](const char* key, const nlohmann::json& value) {
    return why([&](auto& j) { j["text_config"][key] = value; });
  };
  const auto rope = [](const char* key, const nlohmann::json& value) {
    return why([&](auto& j) { j["text_config"]["rope_parameters"][key] = value; });
  };
  const auto vision = [](const char* key, const nlohmann::json& value) {
    return why([&](auto& j) { j["vision_config"][key] = value; });
  };
  CHECK(why([](auto& j) { j.erase("model_type"); }) == "FILE: model_type is missing");
  CHECK(why([](auto& j) { j["model_type"] = "qwen3_vl"; }) ==
        "FILE: model_type \"qwen3_vl\" is not supported, only \"qwen3_5\"");
  CHECK(holds(why([](auto& j) { j["architectures"] = {"Qwen3_5ForCausalLM"}; }),
              "architectures must hold"));
  CHECK(why([](auto& j) {
          j["quantization_config"] = {{"bits", 4}};
        }) == "FILE: quantization_config is not supported");
  CHECK(why([](auto& j) { j["transformers_weights"] = "x"; }) ==
        "FILE: transformers_weights is not supported");
  CHECK(text("model_type", "qwen3_5_moe_text") ==
        "FILE: text_config: model_type \"qwen3_5_moe_text\" is "
        "not supported, only \"qwen3_5_text\"");
  CHECK(holds(text("hidden_act", "gelu"), "text_config: hidden_act \"gelu\" is not supported"));
  CHECK(text("attention_bias", true) == "FILE: text_config: attention_bias true is not supported");
  CHECK(holds(text("attn_output_gate", false), "attn_output_gate false is not supported"));
  CHECK(holds(text("num_experts", 8), "num_experts is not supported"));
  CHECK(holds(text("mlp_only_layers", {1}), "mlp_only_layers is not supported"));
  CHECK(holds(text("sliding_window", 512), "sliding_window is not supported"));
  CHECK(holds(rope("rope_type", "yarn"), "rope_parameters: rope_type \"yarn\" is not supported"));
  CHECK(holds(rope("mrope_interleaved", false), "mrope_interleaved false is not supported"));
  CHECK(holds(rope("full_attention", {{"rope_theta", 1}}), "full_attention is not supported"));
  CHECK(holds(vision("model_type", "clip"), "vision_config: model_type \"clip\" is not supported"));
  CHECK(holds(vision("hidden_act", "gelu"), "hidden_act \"gelu\" is not supported"));
  CHECK(
      holds(vision("deepstack_visual_indexes", {8}), "deepstack_visual_indexes is not supported"));
  CHECK(holds(vision("rope_parameters", {{"rope_type", "yarn"}}),
              "rope_type \"yarn\" is not supported"));
  CHECK(holds(vision("in_channels", 1), "in_channels must be an integer from 3 to 3, found 1"));
  CHECK(holds(vision("head_dim", 12), "head_dim must be an integer from 20 to 20, found 12"));
  CHECK(holds(vision("patch_size", {16, 16}),
              "patch_size must be an integer from 1 to 256, found an array"));
}

TEST_CASE("sizes are bounded and agree") {
  const auto text = [](const char* key, const nlohmann::json& value) {
    return why([&](auto& j) { j["text_config"][key] = value; });
  };
  for (const nlohmann::json& bad :
       nlohmann::json::array({0, -1, 96.0, "96", true, nullptr, 1 << 21, 1ULL << 63, 1e300})) {
    CAPTURE(bad);
    CHECK(holds(text("hidden_size", bad),
                "text_config: hidden_size must be an integer from 1 to 1048576"));
  }
  CHECK(holds(text("num_key_value_heads", 4),
              "num_attention_heads 6 is no multiple of num_key_value_heads 4"));
  CHECK(holds(text("linear_num_key_heads", 4),
              "linear_num_value_heads 6 is no multiple of linear_num_key_heads 4"));
  CHECK(holds(text("num_hidden_layers", 9),
              "layer_types holds 8 entries, but num_hidden_layers is 9"));
  CHECK(holds(text("layer_types", {"chunked_attention"}),
              "layer_types may not hold \"chunked_attention\""));
  CHECK(holds(text("layer_types", 4), "layer_types must be an array"));
  CHECK(holds(text("rms_norm_eps", 0), "rms_norm_eps must be positive and finite, found 0"));
  CHECK(holds(text("rms_norm_eps", "x"), "rms_norm_eps must be a number, found \"x\""));
  CHECK(holds(text("head_dim", 30),
              "partial_rotary_factor 0.25 of head_dim 30 is no positive even number"));
  const auto rope = [](const char* key, const nlohmann::json& value) {
    return why([&](auto& j) { j["text_config"]["rope_parameters"][key] = value; });
  };
  CHECK(
      holds(rope("mrope_section", {2, 1, 2}), "mrope_section [2, 1, 2] does not sum to half of 8"));
  CHECK(holds(rope("mrope_section", {2, 2}), "mrope_section must hold three integers"));
  CHECK(holds(rope("mrope_section", {2, -1, 3}), "mrope_section may not hold -1"));
  CHECK(holds(rope("mrope_section", {2, 1, 1.5}), "mrope_section may not hold 1.5"));
  CHECK(holds(rope("partial_rotary_factor", 1.5), "partial_rotary_factor 1.5 is above 1"));
  CHECK(holds(rope("rope_theta", nullptr), "rope_theta must be a number, found null"));
  CHECK(holds(rope("rope_type", 1), "rope_type must be a string, found 1"));
  CHECK(holds(why([](auto& j) { j["vision_config"]["num_heads"] = 16; }),
              "hidden_size 80 is no multiple of 4 * num_heads 64"));
  CHECK(holds(why([](auto& j) { j["vision_config"]["num_position_embeddings"] = 65; }),
              "num_position_embeddings 65 is no square"));
  CHECK(holds(why([](auto& j) { j["vision_config"]["out_hidden_size"] = 80; }),
              "out_hidden_size 80 differs from the text model's hidden_size 96"));
  CHECK(holds(why([](auto& j) { j["image_token_id"] = 1472; }),
              "image_token_id must be an integer from 0 to 1471, found 1472"));
  CHECK(holds(why([](auto& j) { j["tie_word_embeddings"] = 1; }),
              "tie_word_embeddings must be true or false, found 1"));
  CHECK(why([](auto& j) { j["text_config"] = 5; }) ==
        "FILE: text_config must be an object, found 5");
}

TEST_CASE("a config that is no JSON object") {
  const auto broken = [](const std::string& text) {
    return refusal([&] { parse_model_config(text, "FILE"); });
  };
  CHECK(holds(broken(""), "FILE: "));
  CHECK(holds(broken("{\"model_type\":"), "FILE: parse error at line 1"));
  CHECK(broken("[]") == "FILE must hold a JSON object");
  CHECK(broken("\xEF\xBB\xBF{}") == "FILE: JSON may not begin with a byte order mark");
  CHECK(broken(std::string("{}\0", 3)) == "FILE: a NUL byte at offset 2 of the JSON");
  CHECK(broken("{\"a\":" + std::string(100000, '[')) == "FILE: nested too deeply");
  CHECK(holds(broken(std::string((std::size_t{16} << 20) + 1, ' ')),
              "are too many, the limit is 16777216"));
}

TEST_CASE("calibration must be whole") {
  const auto parse = [](const std::string& text) { return parse_decision_config(text, "FILE"); };
  const DecisionConfig config =
      parse(R"({"temperature": 1, "mm_temperature": 0.5, "threshold": 0})");
  CHECK(config.temperature == 1);
  CHECK(config.mm_temperature == 0.5);
  CHECK(config.threshold == 0);
  for (const char* key : {"temperature", "mm_temperature", "threshold"}) {
    CAPTURE(key);
    const auto with = [&](const nlohmann::json* value) {
      nlohmann::json json = {{"temperature", 1.5}, {"mm_temperature", 2.5}, {"threshold", 0.5}};
      if (value == nullptr) {
        json.erase(key);
      } else {
        json[key] = *value;
      }
      return refusal([&] { parse(json.dump()); });
    };
    CHECK(with(nullptr) == std::string("FILE: ") + key + " is missing");
    const nlohmann::json text = "1";
    CHECK(with(&text) == std::string("FILE: ") + key + " must be a number, found \"1\"");
    if (key == std::string("threshold")) continue;
    for (const double bad : {0.0, -1.0}) {
      const nlohmann::json value = bad;
      CHECK(holds(with(&value), "must be positive and finite"));
    }
    for (const double bad : {5e-324, 0.000999, 1000.5, 1e300}) {
      const nlohmann::json value = bad;
      CHECK(holds(with(&value), std::string("FILE: ") + key + " must be 0.001 to 1000, found "));
    }
    for (const double good : {0.001, 1000.0}) {
      nlohmann::json json = {{"temperature", 1.5}, {"mm_temperature", 2.5}, {"threshold", 0.5}};
      json[key] = good;
      const DecisionConfig parsed = parse(json.dump());
      CHECK((key == std::string("temperature") ? parsed.temperature : parsed.mm_temperature) ==
            good);
    }
  }
  CHECK(holds(
      refusal([&] { parse(R"({"temperature": 1e999, "mm_temperature": 1, "threshold": 0})"); }),
      "FILE: "));
  CHECK(
      holds(refusal([&] { parse(R"({"temperature": NaN, "mm_temperature": 1, "threshold": 0})"); }),
            "FILE: "));
}

}  // namespace
}  // namespace jemm

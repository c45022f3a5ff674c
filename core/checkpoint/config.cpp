// Fields of config.json and decision_config.json, each checked for its range.
#include "checkpoint/config.h"

#include <cmath>
#include <initializer_list>

#include "base/error.h"
#include "checkpoint/json_object.h"

namespace jemm {
namespace {

// Bounds far above any real model and low enough that no product of sizes below leaves 63 bits:
// the largest, a merger's (hidden * merge^2)^2, stays under 2^56.
constexpr IntRange kLayers{1, 1024};
constexpr IntRange kWidth{1, 1 << 20};
constexpr IntRange kVocabulary{1, 1 << 24};
constexpr IntRange kHeads{1, 1 << 12};
constexpr IntRange kHeadWidth{1, 1 << 12};
constexpr IntRange kTaps{1, 64};
constexpr IntRange kPatch{1, 256};
constexpr IntRange kSmall{1, 16};

/// Refuses a key that is present with another value than the one that the engines compute.
void require_string(const JsonObject& object, std::string_view key, std::string_view fallback,
                    std::string_view only) {
  const std::string found = object.string(key, fallback);
  if (found != only) {
    object.refuse(key,
                  fmt::format("{} is not supported, only {}", in_quotes(found), in_quotes(only)));
  }
}

void require_boolean(const JsonObject& object, std::string_view key, bool only) {
  if (object.boolean(key, only) != only) {
    object.refuse(key, fmt::format("{} is not supported", !only));
  }
}

/// Keys of other architectures and of quantised weights, which change the maths when not empty.
void require_empty(const JsonObject& object, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    const nlohmann::json* found = object.find(key);
    if (found != nullptr && !is_blank(*found)) object.refuse(key, "is not supported");
  }
}

void require_divides(const JsonObject& object, std::string_view divisor_key, std::int64_t divisor,
                     std::string_view key, std::int64_t value) {
  if (value % divisor != 0) {
    object.refuse(key, fmt::format("{} is no multiple of {} {}", value, divisor_key, divisor));
  }
}

std::vector<LayerType> read_layer_types(const JsonObject& text) {
  const std::int64_t n_layers = text.integer("num_hidden_layers", 32, kLayers);
  std::vector<LayerType> types;
  const nlohmann::json* listed = text.find_not_null("layer_types");
  if (listed == nullptr) {
    const std::int64_t interval = text.integer("full_attention_interval", 4, kLayers);
    for (std::int64_t i = 1; i <= n_layers; ++i) {
      types.push_back(i % interval == 0 ? LayerType::kFullAttention : LayerType::kLinearAttention);
    }
    return types;
  }
  if (!listed->is_array()) text.refuse("layer_types", "must be an array");
  for (const nlohmann::json& type : *listed) {
    if (type == "linear_attention") {
      types.push_back(LayerType::kLinearAttention);
    } else if (type == "full_attention") {
      types.push_back(LayerType::kFullAttention);
    } else {
      text.refuse("layer_types", "may not hold " + json_text(type));
    }
  }
  if (static_cast<std::int64_t>(types.size()) != n_layers) {
    text.refuse("layer_types", fmt::format("holds {} entries, but num_hidden_layers is {}",
                                           types.size(), n_layers));
  }
  return types;
}

/// Transformers takes the older keys rope_scaling (instead of rope_parameters), rope_theta and
/// partial_rotary_factor (beside it) too; what stands inside wins.
JsonObject rope_object(const JsonObject& owner) {
  const nlohmann::json* older = owner.find_not_null("rope_scaling");
  return owner.object(older != nullptr && !older->empty() ? "rope_scaling" : "rope_parameters");
}

double read_rope_theta(const JsonObject& owner, const JsonObject& rope) {
  constexpr double kDefaultTheta = 10000;
  return rope.find("rope_theta") != nullptr ? rope.positive_number("rope_theta", 0)
                                            : owner.positive_number("rope_theta", kDefaultTheta);
}

std::string rope_type_key(const JsonObject& rope) {
  return rope.find("rope_type") != nullptr ? "rope_type" : "type";
}

void read_sections(const JsonObject& rope, TextConfig& config) {
  config.mrope_section = {11, 11, 10};
  if (const nlohmann::json* sections = rope.find("mrope_section")) {
    if (!sections->is_array() || sections->size() != config.mrope_section.size()) {
      rope.refuse("mrope_section", "must hold three integers");
    }
    for (std::size_t i = 0; i < config.mrope_section.size(); ++i) {
      const nlohmann::json& section = (*sections)[i];
      if (!section.is_number_unsigned() || section > kHeadWidth.high) {
        rope.refuse("mrope_section", "may not hold " + json_text(section));
      }
      config.mrope_section[i] = section.get<std::int64_t>();
    }
  }
  const auto& [t, h, w] = config.mrope_section;
  if (2 * (t + h + w) != config.rotary_dim) {
    rope.refuse("mrope_section", fmt::format("[{}, {}, {}] does not sum to half of {} rotary "
                                             "dimensions",
                                             t, h, w, config.rotary_dim));
  }
}

void read_text_rope(const JsonObject& text, TextConfig& config) {
  const JsonObject rope = rope_object(text);
  require_string(rope, rope_type_key(rope), "default", "default");
  require_boolean(rope, "mrope_interleaved", true);
  for (const std::string_view layer_type : {"linear_attention", "full_attention"}) {
    if (rope.find(layer_type) != nullptr) rope.refuse(layer_type, "is not supported");
  }
  config.rope_theta = read_rope_theta(text, rope);
  const bool inside = rope.find("partial_rotary_factor") != nullptr;
  const double factor = (inside ? rope : text).positive_number("partial_rotary_factor", 0.25);
  if (factor > 1) rope.refuse("partial_rotary_factor", fmt::format("{} is above 1", factor));
  config.rotary_dim = static_cast<std::int64_t>(static_cast<double>(config.head_dim) * factor);
  if (config.rotary_dim < 2 || config.rotary_dim % 2 != 0) {
    rope.refuse("partial_rotary_factor", fmt::format("{} of head_dim {} is no positive even number",
                                                     factor, config.head_dim));
  }
  read_sections(rope, config);
}

TextConfig read_text(const JsonObject& text) {
  require_string(text, "model_type", "qwen3_5_text", "qwen3_5_text");
  require_string(text, "hidden_act", "silu", "silu");
  require_boolean(text, "attention_bias", false);
  require_boolean(text, "attn_output_gate", true);
  require_empty(text, {"mlp_only_layers", "num_experts", "sliding_window"});

  TextConfig config;
  config.vocab_size = text.integer("vocab_size", 248320, kVocabulary);
  config.hidden_size = text.integer("hidden_size", 4096, kWidth);
  config.intermediate_size = text.integer("intermediate_size", 12288, kWidth);
  config.layer_types = read_layer_types(text);
  config.rms_norm_eps = text.positive_number("rms_norm_eps", 1e-6);
  config.n_heads = text.integer("num_attention_heads", 16, kHeads);
  config.n_kv_heads = text.integer("num_key_value_heads", 4, kHeads);
  config.head_dim = text.integer("head_dim", 256, kHeadWidth);
  config.n_key_heads = text.integer("linear_num_key_heads", 16, kHeads);
  config.n_value_heads = text.integer("linear_num_value_heads", 32, kHeads);
  config.key_head_dim = text.integer("linear_key_head_dim", 128, kHeadWidth);
  config.value_head_dim = text.integer("linear_value_head_dim", 128, kHeadWidth);
  config.conv_width = text.integer("linear_conv_kernel_dim", 4, kTaps);
  require_divides(text, "num_key_value_heads", config.n_kv_heads, "num_attention_heads",
                  config.n_heads);
  require_divides(text, "linear_num_key_heads", config.n_key_heads, "linear_num_value_heads",
                  config.n_value_heads);
  read_text_rope(text, config);
  return config;
}

void read_vision_rope(const JsonObject& vision, VisionConfig& config) {
  const JsonObject rope = rope_object(vision);
  const std::string key = rope_type_key(rope);
  if (rope.string(key, "axial") != "default") {  // Transformers reads "default" as axial here
    require_string(rope, key, "axial", "axial");
  }
  config.rope_theta = read_rope_theta(vision, rope);
}

VisionConfig read_vision(const JsonObject& vision) {
  if (vision.string("model_type", "qwen3_5") != "qwen3_5") {  // written by early configs
    require_string(vision, "model_type", "", "qwen3_5_vision");
  }
  require_string(vision, "hidden_act", "gelu_pytorch_tanh", "gelu_pytorch_tanh");
  require_empty(vision, {"deepstack_visual_indexes"});

  VisionConfig config;
  config.depth = vision.integer("depth", 27, kLayers);
  config.hidden_size = vision.integer("hidden_size", 1152, kWidth);
  config.intermediate_size = vision.integer("intermediate_size", 4304, kWidth);
  const bool alias = vision.find("num_heads") == nullptr;
  config.n_heads = vision.integer(alias ? "num_attention_heads" : "num_heads", 16, kHeads);
  config.n_channels = vision.integer("in_channels", 3, {3, 3});
  config.patch_size = vision.integer("patch_size", 16, kPatch);
  config.temporal_patch_size = vision.integer("temporal_patch_size", 2, kSmall);
  config.merge_size = vision.integer("spatial_merge_size", 2, kSmall);
  config.n_position_embeddings = vision.integer("num_position_embeddings", 2304, kWidth);
  config.out_hidden_size = vision.integer("out_hidden_size", 3584, kWidth);
  // Each head splits in halves for rows and columns, each of which rotates pairs.
  require_divides(vision, "4 * num_heads", 4 * config.n_heads, "hidden_size", config.hidden_size);
  const std::int64_t head_dim = config.hidden_size / config.n_heads;
  vision.integer("head_dim", head_dim, {head_dim, head_dim});
  const auto side = static_cast<std::int64_t>(
      std::lround(std::sqrt(static_cast<double>(config.n_position_embeddings))));
  if (side * side != config.n_position_embeddings) {
    vision.refuse("num_position_embeddings",
                  fmt::format("{} is no square", config.n_position_embeddings));
  }
  read_vision_rope(vision, config);
  return config;
}

void require_architecture(const JsonObject& root) {
  constexpr std::string_view kOnly = "Qwen3_5ForConditionalGeneration";
  const nlohmann::json* listed = root.find_not_null("architectures");
  if (listed == nullptr) return;
  if (!listed->is_array() || listed->size() != 1 || (*listed)[0] != kOnly) {
    root.refuse("architectures", fmt::format("must hold {} alone", kOnly));
  }
}

/// A divisor of logits. Calibration gives numbers near 1; one far from it is a mistake, and a tiny
/// one makes the quotients overflow.
double read_temperature(const JsonObject& root, std::string_view key) {
  constexpr double kLow = 1e-3, kHigh = 1e3;
  root.require(key);
  const double temperature = root.positive_number(key, 0);
  if (temperature < kLow || temperature > kHigh) {
    root.refuse(key, fmt::format("must be {} to {}, found {}", kLow, kHigh, temperature));
  }
  return temperature;
}

}  // namespace

ModelConfig parse_model_config(std::string_view json, const std::string& file) {
  const nlohmann::json value = parse_json_object(json, file);
  const JsonObject root(value, file);
  root.require("model_type");
  require_string(root, "model_type", "", "qwen3_5");
  require_architecture(root);
  require_empty(root, {"quantization_config", "transformers_weights"});

  ModelConfig config;
  config.text = read_text(root.object("text_config"));
  const JsonObject vision = root.object("vision_config");
  config.vision = read_vision(vision);
  if (config.vision.out_hidden_size != config.text.hidden_size) {
    vision.refuse("out_hidden_size",
                  fmt::format("{} differs from the text model's hidden_size {}",
                              config.vision.out_hidden_size, config.text.hidden_size));
  }
  config.tied_head = root.boolean("tie_word_embeddings", false);
  const IntRange ids{0, config.text.vocab_size - 1};
  config.image_token_id = static_cast<std::int32_t>(root.integer("image_token_id", 248056, ids));
  config.video_token_id = static_cast<std::int32_t>(root.integer("video_token_id", 248057, ids));
  return config;
}

DecisionConfig parse_decision_config(std::string_view json, const std::string& file) {
  const nlohmann::json value = parse_json_object(json, file);
  const JsonObject root(value, file);
  DecisionConfig config;
  config.temperature = read_temperature(root, "temperature");
  config.mm_temperature = read_temperature(root, "mm_temperature");
  root.require("threshold");
  config.threshold = root.number("threshold", 0);
  if (!std::isfinite(config.threshold)) root.refuse("threshold", "must be finite");
  return config;
}

}  // namespace jemm

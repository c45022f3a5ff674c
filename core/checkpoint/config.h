// config.json and decision_config.json as plain numbers. Absent keys take Transformers' defaults.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace jemm {

enum class LayerType { kLinearAttention, kFullAttention };

/// The language model. Letters as in docs/shapes.md.
struct TextConfig {
  std::int64_t vocab_size = 0;         // V
  std::int64_t hidden_size = 0;        // D
  std::int64_t intermediate_size = 0;  // F
  std::vector<LayerType> layer_types;  // one a layer
  double rms_norm_eps = 0;
  // Full attention.
  std::int64_t n_heads = 0;     // Hq
  std::int64_t n_kv_heads = 0;  // Hkv
  std::int64_t head_dim = 0;    // Dh
  std::int64_t rotary_dim = 0;  // head_dim * partial_rotary_factor
  double rope_theta = 0;
  std::array<std::int64_t, 3> mrope_section{};  // interleaved; sums to rotary_dim / 2
  // Gated DeltaNet.
  std::int64_t n_key_heads = 0;     // Hk
  std::int64_t n_value_heads = 0;   // Hv
  std::int64_t key_head_dim = 0;    // Dk
  std::int64_t value_head_dim = 0;  // Dv
  std::int64_t conv_width = 0;      // taps of the causal convolution

  std::int64_t n_layers() const { return static_cast<std::int64_t>(layer_types.size()); }
  std::int64_t key_dim() const { return n_key_heads * key_head_dim; }
  std::int64_t value_dim() const { return n_value_heads * value_head_dim; }
  std::int64_t conv_dim() const { return 2 * key_dim() + value_dim(); }
};

/// The vision tower.
struct VisionConfig {
  std::int64_t depth = 0;
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t n_heads = 0;
  std::int64_t n_channels = 0;
  std::int64_t patch_size = 0;
  std::int64_t temporal_patch_size = 0;
  std::int64_t merge_size = 0;
  std::int64_t n_position_embeddings = 0;  // a square grid
  std::int64_t out_hidden_size = 0;
  double rope_theta = 0;
};

struct ModelConfig {
  TextConfig text;
  VisionConfig vision;
  bool tied_head = false;
  std::int32_t image_token_id = 0;
  std::int32_t video_token_id = 0;
};

/// The calibration numbers of decision_config.json.
struct DecisionConfig {
  double temperature = 0;     // 1e-3 to 1e3
  double mm_temperature = 0;  // likewise
  double threshold = 0;
};

/// Both throw Error(kInput) naming file, key and what was wrong, for unknown architectures, missing
/// or inconsistent sizes, and anything that the engines do not implement.
ModelConfig parse_model_config(std::string_view json, const std::string& file);
DecisionConfig parse_decision_config(std::string_view json, const std::string& file);

}  // namespace jemm

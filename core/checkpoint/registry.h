// Every tensor of the architecture, from its config: name, shape and what it is. Knows no files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/config.h"
#include "checkpoint/tensor.h"

namespace jemm {

/// What a tensor is for. It decides how its values are to be read, and the synthetic formula.
enum class TensorRole {
  kEmbedding,          // embed_tokens [V, D]
  kHead,               // lm_head [V, D]
  kLinear,             // [out, in]; the patch embedding has several input axes
  kBias,               // of linear layers and layer norms
  kOffsetNorm,         // RMSNorm: stored as the offset from one
  kGatedNorm,          // linear_attn.norm: stored plainly
  kLayerNorm,          // stored plainly
  kConvolution,        // depthwise, [channels, 1, taps]
  kLogDecay,           // A_log [Hv]
  kTimeBias,           // dt_bias [Hv]
  kPositionEmbedding,  // the vision tower's grid
};

struct TensorInfo {
  std::string name;
  Shape shape;
  TensorRole role = TensorRole::kLinear;
  bool takes_lora = false;  ///< a linear layer of the language model, where the engines apply pairs
};

/// What is kept of a head that is not tied.
enum class HeadForm {
  kWhole,      ///< lm_head.weight
  kLabelRows,  ///< kLabelRows alone, as in exports
};
/// The head's rows of the 32 labels [32, D], in the labels' order.
inline constexpr std::string_view kLabelRows = "lm_head.label_rows.weight";

/// All tensors of a model, sorted by name.
class TensorRegistry {
 public:
  explicit TensorRegistry(const ModelConfig& config, HeadForm head = HeadForm::kWhole);

  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorInfo* find(std::string_view name) const;

 private:
  std::vector<TensorInfo> tensors_;
};

/// A linear layer's module name: its weight's without ".weight".
std::string_view module_name(const TensorInfo& weight);

}  // namespace jemm

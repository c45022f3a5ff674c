// adapter_config.json: which layers take a low-rank pair, of which rank and scale. Knows no
// weights.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/registry.h"

namespace jemm {

/// A pair's tensors are named kAdapterPrefix + module + kLoraA or kLoraB.
inline constexpr std::string_view kAdapterPrefix = "base_model.model.";
inline constexpr std::string_view kLoraA = ".lora_A.weight";
inline constexpr std::string_view kLoraB = ".lora_B.weight";

/// A layer that the adapter's config selects.
struct AdapterTarget {
  const TensorInfo* weight = nullptr;
  std::int64_t rank = 0;
  double scale = 0;  ///< lora_alpha / rank, or lora_alpha / sqrt(rank) for rsLoRA

  std::string_view module() const { return module_name(*weight); }
  Shape a_shape() const { return {rank, weight->shape[1]}; }
  Shape b_shape() const { return {weight->shape[0], rank}; }
};

/// The layers that PEFT 0.21 would give pairs to, sorted by module. Throws Error(kInput) naming
/// file and field for whatever changes the maths and is not implemented, for a field that is not
/// known here unless it is null, false, 0 or empty, for a target that the engines do not apply (the
/// vision tower, a norm, a whole block), and when no layer is selected. The targets point into
/// `registry`.
std::vector<AdapterTarget> parse_adapter_config(std::string_view json, const std::string& file,
                                                const TensorRegistry& registry);

/// The target of that module; null when there is none.
const AdapterTarget* find_target(const std::vector<AdapterTarget>& targets,
                                 std::string_view module);

}  // namespace jemm

// The adapter's low-rank pairs, checked against the registry and the adapter's config.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "checkpoint/adapter_config.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/registry.h"
#include "checkpoint/safetensors.h"

namespace jemm {

inline constexpr const char* kAdapterConfigFile = "adapter_config.json";
inline constexpr const char* kAdapterWeightsFile = "adapter_model.safetensors";

class AdapterWeights {
 public:
  /// Reads adapter_model.safetensors. Throws Error(kInput) that lists tensors that fit no layer,
  /// halves of pairs, and shapes or types that do not fit.
  AdapterWeights(const FileSource& adapter, const AdapterConfig& config,
                 const TensorRegistry& registry);

  /// F32; BF16 and F16 pairs are widened, as PEFT widens them.
  std::optional<LoraPair> pair(std::string_view module) const;

 private:
  struct Pair {
    std::string_view module;  // into the registry
    const SafetensorsEntry* a = nullptr;
    const SafetensorsEntry* b = nullptr;
    double scale = 0;
  };
  void place_all(const TensorRegistry& registry);
  void check_shapes(const AdapterConfig& config, const TensorRegistry& registry);

  SafetensorsFile file_;
  std::vector<Pair> pairs_;  // sorted by module
};

}  // namespace jemm

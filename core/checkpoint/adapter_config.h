// adapter_config.json: which layers take a low-rank pair, of which rank and scale.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace jemm {

class AdapterConfig {
 public:
  /// Throws Error(kInput) naming file and field for anything that changes the maths and is not
  /// implemented, and for fields that PEFT 0.21 does not know unless they are null, false or empty.
  AdapterConfig(std::string_view json, const std::string& file);

  std::int64_t rank(std::string_view module) const;
  /// lora_alpha / rank, or lora_alpha / sqrt(rank) for rsLoRA.
  double scale(std::string_view module) const;

 private:
  std::int64_t rank_ = 0;
  double alpha_ = 0;
  bool use_rslora_ = false;
};

}  // namespace jemm

// The adapter's low-rank pairs, checked against the layers that its config selects.
#pragma once

#include <vector>

#include "checkpoint/adapter_config.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"

namespace jemm {

class AdapterWeights {
 public:
  /// `file` is adapter_model.safetensors, which must hold the pair of every target and nothing
  /// else: PEFT warns of a missing pair and passes over a surplus tensor, and then answers partly
  /// as the base model. Throws Error(kInput) that lists such tensors, and for a shape or type that
  /// does not fit. `targets` must outlive the object.
  AdapterWeights(SafetensorsFile file, const std::vector<AdapterTarget>& targets);

  AdapterWeights(const AdapterWeights&) = delete;
  AdapterWeights& operator=(const AdapterWeights&) = delete;

  /// F32; BF16 and F16 pairs are widened, as PEFT widens them. `target` must be one of `targets`.
  LoraPair pair(const AdapterTarget& target) const;
  const SafetensorsFile& file() const { return file_; }

 private:
  struct Entries {
    const SafetensorsEntry* a = nullptr;
    const SafetensorsEntry* b = nullptr;
  };
  void place_all();
  void check_all() const;

  SafetensorsFile file_;
  const std::vector<AdapterTarget>& targets_;
  std::vector<Entries> entries_;  // one a target
};

}  // namespace jemm

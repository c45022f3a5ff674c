// How much memory a model asks for, by engine and precision, from its config alone.
#pragma once

#include <cstdint>

#include "checkpoint/config.h"
#include "checkpoint/manifest.h"
#include "checkpoint/registry.h"

namespace jemm {

/// Bytes. Weights and pairs once, activations for each token row of a pass, and for each patch of
/// the images that are looked at together.
struct MemoryNeed {
  std::uint64_t weights = 0;
  std::uint64_t pairs = 0;
  std::uint64_t a_row = 0;
  std::uint64_t a_patch = 0;

  std::uint64_t total(std::uint64_t n_rows, std::uint64_t n_patches) const {
    return weights + pairs + n_rows * a_row + n_patches * a_patch;
  }
};

/// The values that the engines keep of a row: 4 D + F + 2 conv_dim + 3 value_dim; of a patch:
/// 11 Dimg + Fimg and the patch itself (cpu_engine.h). `value_size`: 4, or 2 for BF16.
/// `stored_bytes`: the weights as the engine holds them.
MemoryNeed memory_need(const ModelConfig& config, std::uint64_t stored_bytes,
                       std::uint64_t n_pair_values, std::uint64_t value_size);

/// What one layer keeps of a pass, in bytes; the next layer uses the same memory.
struct PassMemory {
  std::uint64_t a_segment = 0;  ///< recurrent state, float32 [Hv, Dk, Dv]
  std::uint64_t a_row = 0;      ///< keys and values, [2, Hkv, Dh]
};
PassMemory pass_memory(const TextConfig& text, std::uint64_t value_size);

/// Parameters of the model, the head as 32 rows.
std::uint64_t parameter_count(const TensorRegistry& registry);
/// Values of all pairs.
std::uint64_t pair_values(const std::vector<AdapterTarget>& targets);

}  // namespace jemm

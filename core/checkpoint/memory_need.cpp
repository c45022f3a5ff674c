// Sums over sizes of the config.
#include "checkpoint/memory_need.h"

namespace jemm {

MemoryNeed memory_need(const ModelConfig& config, std::uint64_t stored_bytes,
                       std::uint64_t n_pair_values, std::uint64_t value_size) {
  const TextConfig& text = config.text;
  const VisionConfig& vision = config.vision;
  const std::int64_t row_values =
      4 * text.hidden_size + text.intermediate_size + 2 * text.conv_dim() + 3 * text.value_dim();
  const std::int64_t patch_values =
      11 * vision.hidden_size + vision.intermediate_size +
      vision.n_channels * vision.temporal_patch_size * vision.patch_size * vision.patch_size;
  return {.weights = stored_bytes,
          .pairs = 4 * n_pair_values,
          .a_row = value_size * static_cast<std::uint64_t>(row_values),
          .a_patch = value_size * static_cast<std::uint64_t>(patch_values)};
}

PassMemory pass_memory(const TextConfig& text, std::uint64_t value_size) {
  return {.a_segment =
              sizeof(float) * static_cast<std::uint64_t>(text.n_value_heads * text.key_head_dim *
                                                         text.value_head_dim),
          .a_row = value_size * 2 * static_cast<std::uint64_t>(text.n_kv_heads * text.head_dim)};
}

std::uint64_t parameter_count(const TensorRegistry& registry) {
  std::int64_t count = 0;
  for (const TensorInfo& info : registry.tensors()) {
    count += info.role == TensorRole::kHead ? 32 * info.shape[1] : element_count(info.shape);
  }
  return static_cast<std::uint64_t>(count);
}

std::uint64_t pair_values(const std::vector<AdapterTarget>& targets) {
  std::int64_t count = 0;
  for (const AdapterTarget& target : targets) {
    count += element_count(target.a_shape()) + element_count(target.b_shape());
  }
  return static_cast<std::uint64_t>(count);
}

}  // namespace jemm

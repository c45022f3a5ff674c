// What any checkpoint can do: rows of the head, names of modes.
#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "base/error.h"

namespace jemm {

std::string_view lora_mode_name(LoraMode mode) {
  return mode == LoraMode::kMerged ? "merged" : "unmerged";
}

Tensor Checkpoint::head_rows(std::span<const std::int32_t> ids) const {
  return gather_rows(
      tensor(config().tied_head ? "model.language_model.embed_tokens.weight" : "lm_head.weight"),
      ids);
}

Tensor gather_rows(const Tensor& matrix, std::span<const std::int32_t> rows) {
  const std::size_t row_bytes =
      static_cast<std::size_t>(matrix.shape[1]) * dtype_size(matrix.dtype);
  const auto bytes = std::make_shared<std::vector<std::byte>>();
  bytes->reserve(rows.size() * row_bytes);
  for (const std::int32_t row : rows) {
    if (row < 0 || row >= matrix.shape[0]) {
      fail(ErrorKind::kInput, "label token {} is outside the head's {} rows", row, matrix.shape[0]);
    }
    const auto from =
        matrix.data.bytes.subspan(static_cast<std::size_t>(row) * row_bytes, row_bytes);
    bytes->insert(bytes->end(), from.begin(), from.end());
  }
  return {matrix.dtype,
          {static_cast<std::int64_t>(rows.size()), matrix.shape[1]},
          {std::span<const std::byte>(*bytes), bytes}};
}

}  // namespace jemm

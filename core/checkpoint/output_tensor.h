// Tensors to be written, made a run of rows at a time, so that memory does not grow with them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/blocks.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/registry.h"
#include "checkpoint/safetensors.h"

namespace jemm {

/// A tensor [n_rows, ...]. One without axes counts as one row.
struct OutputTensor {
  std::string name;
  DType dtype = DType::kBf16;
  Shape shape;
  /// Writes rows [first, first + n) to `out`, n * row_bytes() bytes. May be called by one thread at
  /// a time. Throws Error.
  std::function<void(std::int64_t first, std::int64_t n, std::span<std::byte> out)> make;

  std::int64_t n_rows() const { return shape.empty() ? 1 : shape[0]; }
  std::size_t size_bytes() const {
    return static_cast<std::size_t>(element_count(shape)) * dtype_size(dtype);
  }
  std::size_t row_bytes() const {
    return n_rows() == 0 ? 0 : size_bytes() / static_cast<std::size_t>(n_rows());
  }
};

/// A tensor as a file has it.
OutputTensor stored_tensor(std::shared_ptr<const BlockFile> file, const SafetensorsFile& header,
                           const SafetensorsEntry& entry);
/// A tensor of the formula.
OutputTensor formula_tensor(const TensorInfo& info, std::uint32_t seed);
/// The rows `ids` of `matrix`, under the name kLabelRows. Throws Error(kInput) when it lacks one.
OutputTensor label_rows(OutputTensor matrix, std::span<const std::int32_t> ids);

/// BF16(W + scale * (B A)): the product of each element summed in float in the order of the rank,
/// times the scale as float, added to the widened weight; one rounding to nearest even. The pair is
/// asked for at the first row and let go after the last.
OutputTensor merged_tensor(OutputTensor weight, std::function<LoraPair()> pair);

}  // namespace jemm

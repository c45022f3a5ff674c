// Sizes and text of shapes, and whole tensors widened.
#include "checkpoint/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

namespace jemm {

std::int64_t element_count(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

std::string shape_text(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Tensor widened(const Tensor& tensor) {
  if (tensor.dtype == DType::kF32) return tensor;
  auto values = std::make_shared<std::vector<float>>(static_cast<std::size_t>(tensor.size()));
  widen(tensor.dtype, tensor.data.bytes, *values);
  return {DType::kF32, tensor.shape, {std::as_bytes(std::span(*values)), values}};
}

}  // namespace jemm

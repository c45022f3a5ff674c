// A weight tensor: type, shape and bytes. Knows no files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"
#include "checkpoint/dtype.h"

namespace jemm {

using Shape = std::vector<std::int64_t>;

/// Product of the extents; 1 for a scalar. The caller knows that it fits.
std::int64_t element_count(const Shape& shape);
std::string shape_text(const Shape& shape);  ///< "[248320, 5120]"

/// A tensor's bytes, little-endian, row-major, aligned for `dtype`, valid while `data` lives.
struct Tensor {
  DType dtype = DType::kBf16;
  Shape shape;
  Blob data;

  std::int64_t size() const { return element_count(shape); }
};

/// The tensor's elements as float (exact), in a blob of their own unless they are float already.
Tensor widened(const Tensor& tensor);

}  // namespace jemm

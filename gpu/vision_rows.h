// An image's merged rows in device memory: made by the vision tower, read by the text forward.
#pragma once

#include <cstdint>
#include <utility>

#include "engine/engine.h"
#include "gpu/cuda.h"
#include "gpu/gemm.h"

namespace jemm::gpu {

/// [n_rows, D] of the engine's activation type, dense.
class CudaVisionRows : public VisionRows {
 public:
  CudaVisionRows(DeviceBytes values, std::int64_t n_rows, std::int64_t width, Element element)
      : values_(std::move(values)), n_rows_(n_rows), width_(width), element_(element) {}

  std::int64_t n_rows() const override { return n_rows_; }
  std::size_t size_bytes() const override { return values_.size(); }
  std::int64_t width() const { return width_; }
  Element element() const { return element_; }
  const void* values() const { return values_.data(); }

 private:
  DeviceBytes values_;
  std::int64_t n_rows_, width_;
  Element element_;
};

}  // namespace jemm::gpu

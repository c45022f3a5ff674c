// Merged vision rows on the device, and the memory that passes from one image's rows to the next's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/engine.h"
#include "gpu/cuda.h"
#include "gpu/gemm.h"

namespace jemm::gpu {

/// Device memory that was used and is kept for the next who needs as much. Whoever gets memory may
/// only use it behind all earlier work of the engine's stream, which may still read it.
class RowMemory {
 public:
  /// At least `n_bytes`.
  DeviceBytes take(std::size_t n_bytes);
  void give_back(DeviceBytes bytes) noexcept;

 private:
  static constexpr std::size_t kMostKept = std::size_t{256} << 20;

  std::mutex mutex_;
  std::multimap<std::size_t, DeviceBytes> free_;  // by size
  std::size_t free_bytes_ = 0;
};

/// Rows of one image: [n_rows, D] of an engine's activation type, dense. They and their memory may
/// outlive the engine.
class CudaVisionRows : public VisionRows {
 public:
  /// The rows are not there yet: the caller fills values().
  CudaVisionRows(std::shared_ptr<RowMemory> memory, std::int64_t n_rows, std::int64_t width,
                 Element element);
  ~CudaVisionRows() override;
  CudaVisionRows(const CudaVisionRows&) = delete;
  CudaVisionRows& operator=(const CudaVisionRows&) = delete;

  std::int64_t n_rows() const override { return n_rows_; }
  std::size_t size_bytes() const override;

  std::int64_t width() const { return width_; }
  Element element() const { return element_; }
  void* values() { return bytes_.data(); }
  const void* values() const { return bytes_.data(); }

  /// All rows as float, for a tap. Waits for the stream.
  std::vector<float> floats(const Stream& stream) const;

 private:
  std::shared_ptr<RowMemory> memory_;
  std::int64_t n_rows_, width_;
  Element element_;
  DeviceBytes bytes_;
};

}  // namespace jemm::gpu

// Brings a checkpoint's tensors into device memory, through staging buffers or by the formula.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/registry.h"
#include "gpu/cuda.h"

namespace jemm::gpu {

/// Copies and conversions are enqueued; finish() waits for them. Several threads read a large
/// tensor's parts into page-locked staging buffers, while other parts are copied. One call at a
/// time.
class Loader {
 public:
  explicit Loader(const Checkpoint& checkpoint);

  const Checkpoint& checkpoint() const { return checkpoint_; }

  /// Elements [first, first + n) of a tensor, as T (float or __nv_bfloat16), to device memory.
  /// Large tensors of a synthetic checkpoint are made there.
  template <typename T>
  void elements(const std::string& name, std::int64_t first, std::int64_t n, T* to);
  /// The whole tensor; returns its number of elements.
  template <typename T>
  std::int64_t tensor(const std::string& name, T* to);

  /// A small tensor's values on the host.
  std::vector<float> floats(const std::string& name) const;
  const Shape& shape(const std::string& name) const;  ///< throws Error(kInput) when unknown

  /// Host floats to the device, as T.
  template <typename T>
  void values(const float* from, std::int64_t n, T* to);
  DeviceArray<float> values(const std::vector<float>& from);

  /// Waits for everything; afterwards the memory is ready on any stream.
  void finish();
  const Stream& stream() const { return stream_; }

 private:
  template <typename T>
  void stage(const std::byte* from, DType type, std::int64_t n, T* to);

  static constexpr std::size_t kStages = 8;  // threads that read
  static constexpr std::size_t kStageBytes = std::size_t{16} << 20;
  struct Stage {
    PinnedBytes host{kStageBytes};
    DeviceBytes device{kStageBytes, "staging"};
    Event free;
    std::mutex mutex;
  };

  const Checkpoint& checkpoint_;
  TensorRegistry registry_;
  int device_;
  Stream stream_;
  std::array<Stage, kStages> stages_;
};

}  // namespace jemm::gpu

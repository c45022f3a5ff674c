// CUDA calls that throw with context, and owners of what CUDA hands out. Knows no model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include <cuda_runtime_api.h>

namespace jemm::gpu {

/// Throws Error(kDevice), OutOfMemory where that is it, "WHAT: CUDA's message (its name)" unless
/// `status` is success; `what` says what was attempted, in the words of a user.
void cuda_check(cudaError_t status, std::string_view what);

/// Throws what a kernel launch just before has reported. Waits for nothing.
void check_launch(std::string_view kernel);

/// Throws Error(kDevice) "WHAT of VALUE: the CUDA engine holds at most LIMIT" where value > limit.
void check_limit(std::string_view what, std::int64_t value, std::int64_t limit);

/// The device of this thread's calls.
int current_device();

/// What is the same for every call on a device, computed at the first one.
template <typename Value>
class PerDevice {
 public:
  template <typename Compute>
  const Value& get(int device, const Compute& compute) {
    const std::lock_guard lock(mutex_);
    const auto at = values_.find(device);
    return at != values_.end() ? at->second : values_.emplace(device, compute()).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<int, Value> values_;
};

/// Lets blocks of a kernel have so much dynamic shared memory.
template <typename Kernel>
void allow_shared(Kernel* kernel, std::size_t n_bytes, std::string_view name) {
  cuda_check(
      cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                           cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(n_bytes)),
      name);
}

/// Whether a kernel that uses shared memory was compiled for this device: without a body it uses
/// none. `known`: of this kernel.
template <typename Kernel>
bool has_body(Kernel* kernel, PerDevice<bool>& known) {
  return known.get(current_device(), [kernel] {
    cudaFuncAttributes attributes{};
    cuda_check(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel)),
               "asking for a kernel");
    return attributes.sharedSizeBytes > 0;
  });
}

/// A stream that does not synchronize with the default one (nothing ever runs there).
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t get() const { return stream_; }
  /// Waits for all that was enqueued, and throws what went wrong in it.
  void synchronize(std::string_view what) const;

 private:
  cudaStream_t stream_ = nullptr;
};

/// A point in a stream. Without timing unless asked for.
class Event {
 public:
  enum class Timing { kNone, kMeasured };
  explicit Event(Timing timing = Timing::kNone);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  cudaEvent_t get() const { return event_; }
  void record(const Stream& stream) const;
  void wait() const;                                    ///< on the host
  double milliseconds_since(const Event& start) const;  ///< both measured and passed

 private:
  cudaEvent_t event_ = nullptr;
};

/// Device memory, from cudaMalloc, uninitialised.
class DeviceBytes {
 public:
  DeviceBytes() = default;
  /// `what` names it when memory runs out: "27.1 GiB for the weights: out of memory".
  DeviceBytes(std::size_t size, std::string_view what);
  ~DeviceBytes();
  DeviceBytes(DeviceBytes&& other) noexcept { *this = std::move(other); }
  DeviceBytes& operator=(DeviceBytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Throws OutOfMemory when the device could not give `n_wanted` bytes after `n_freed` of them have
/// been given back.
void check_free_memory(std::size_t n_wanted, std::size_t n_freed, std::string_view what);

/// An array of T in device memory that grows, never shrinks, and forgets its values when it grows.
template <typename T>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(std::int64_t n, std::string_view what = "an array") { reserve(n, what); }

  /// Frees the old memory first: where it grows, nothing in flight may use that.
  T* reserve(std::int64_t n, std::string_view what = "activations") {
    const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(T);
    if (bytes > bytes_.size()) {
      release();
      bytes_ = DeviceBytes(bytes, what);
    }
    return data();
  }
  void release() { bytes_ = DeviceBytes(); }

  T* data() const { return reinterpret_cast<T*>(bytes_.data()); }
  std::int64_t capacity() const { return static_cast<std::int64_t>(bytes_.size() / sizeof(T)); }
  std::size_t size_bytes() const { return bytes_.size(); }

 private:
  DeviceBytes bytes_;
};

/// Page-locked host memory, so that copies run beside the host.
class PinnedBytes {
 public:
  PinnedBytes() = default;
  explicit PinnedBytes(std::size_t size);
  ~PinnedBytes();
  PinnedBytes(PinnedBytes&& other) noexcept { *this = std::move(other); }
  PinnedBytes& operator=(PinnedBytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

void copy_to_device(void* to, const void* from, std::size_t n_bytes, const Stream& stream);
void copy_to_host(void* to, const void* from, std::size_t n_bytes, const Stream& stream);
void copy_on_device(void* to, const void* from, std::size_t n_bytes, const Stream& stream);
void fill_zero(void* to, std::size_t n_bytes, const Stream& stream);

}  // namespace jemm::gpu

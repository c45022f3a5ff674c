// CUDA calls that throw with context, and owners of what CUDA hands out. Knows no model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include <cuda_runtime_api.h>

namespace jemm::gpu {

/// Throws Error(kDevice) "WHAT: CUDA's message (its name)" unless `status` is success; `what` says
/// what was attempted, in the words of a user.
void cuda_check(cudaError_t status, std::string_view what);

/// Throws what a kernel launch just before has reported. Waits for nothing.
void check_launch(std::string_view kernel);

/// Throws Error(kDevice) "WHAT of VALUE: the CUDA engine holds at most LIMIT" where value > limit.
void check_limit(std::string_view what, std::int64_t value, std::int64_t limit);

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
  void wait_in(const Stream& stream) const;             ///< in another stream
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

  /// Frees the old memory first: nothing in flight may use it (the caller has synchronized).
  T* reserve(std::int64_t n, std::string_view what = "activations") {
    const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(T);
    if (bytes > bytes_.size()) {
      bytes_ = DeviceBytes();
      bytes_ = DeviceBytes(bytes, what);
    }
    return data();
  }

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

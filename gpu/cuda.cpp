// Calls of the CUDA runtime, each checked.
#include "gpu/cuda.h"

#include <string>

#include "base/error.h"

namespace jemm::gpu {

void cuda_check(cudaError_t status, std::string_view what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // so that a later check does not report this one again
  const std::string message =
      fmt::format("{}: {} ({})", what, cudaGetErrorString(status), cudaGetErrorName(status));
  if (status == cudaErrorMemoryAllocation) throw OutOfMemory(message);
  throw Error(ErrorKind::kDevice, message);
}

void check_launch(std::string_view kernel) {
  cuda_check(cudaGetLastError(), kernel);
}

void check_limit(std::string_view what, std::int64_t value, std::int64_t limit) {
  if (value > limit) {
    fail(ErrorKind::kDevice, "{} of {}: the CUDA engine holds at most {}", what, value, limit);
  }
}

int current_device() {
  int device = 0;
  cuda_check(cudaGetDevice(&device), "asking for the device");
  return device;
}

Stream::Stream() {
  cuda_check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
}
Stream::~Stream() {
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}
void Stream::synchronize(std::string_view what) const {
  cuda_check(cudaStreamSynchronize(stream_), what);
}

Event::Event(Timing timing) {
  const unsigned flags = timing == Timing::kMeasured ? cudaEventDefault : cudaEventDisableTiming;
  cuda_check(cudaEventCreateWithFlags(&event_, flags), "making an event");
}
Event::~Event() {
  if (event_ != nullptr) cudaEventDestroy(event_);
}
void Event::record(const Stream& stream) const {
  cuda_check(cudaEventRecord(event_, stream.get()), "recording an event");
}
void Event::wait() const {
  cuda_check(cudaEventSynchronize(event_), "waiting for the device");
}
double Event::milliseconds_since(const Event& start) const {
  float ms = 0;
  cuda_check(cudaEventElapsedTime(&ms, start.event_, event_), "measuring time");
  return static_cast<double>(ms);
}

namespace {

std::string memory_message(std::size_t n_wanted, std::string_view what, std::string_view why,
                           std::size_t n_free, std::size_t n_total) {
  constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
  return fmt::format("{:.2f} GiB of device memory for {}: {} ({:.2f} of {:.2f} GiB are free)",
                     static_cast<double>(n_wanted) / kGib, what, why,
                     static_cast<double>(n_free) / kGib, static_cast<double>(n_total) / kGib);
}

}  // namespace

DeviceBytes::DeviceBytes(std::size_t size, std::string_view what) : size_(size) {
  if (size == 0) return;
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, size);
  if (status != cudaSuccess) {
    cudaGetLastError();
    std::size_t n_free = 0, n_total = 0;
    cudaMemGetInfo(&n_free, &n_total);
    const std::string message =
        memory_message(size, what, cudaGetErrorString(status), n_free, n_total);
    if (status == cudaErrorMemoryAllocation) throw OutOfMemory(message);
    throw Error(ErrorKind::kDevice, message);
  }
  data_ = static_cast<std::byte*>(data);
}
DeviceBytes::~DeviceBytes() {
  if (data_ != nullptr) cudaFree(data_);
}

void check_free_memory(std::size_t n_wanted, std::size_t n_freed, std::string_view what) {
  std::size_t n_free = 0, n_total = 0;
  cuda_check(cudaMemGetInfo(&n_free, &n_total), "asking for the free memory");
  if (n_wanted > n_free + n_freed) {
    throw OutOfMemory(memory_message(n_wanted, what, "out of memory", n_free + n_freed, n_total));
  }
}

PinnedBytes::PinnedBytes(std::size_t size) : size_(size) {
  void* data = nullptr;
  cuda_check(cudaMallocHost(&data, size), "page-locked host memory");
  data_ = static_cast<std::byte*>(data);
}
PinnedBytes::~PinnedBytes() {
  if (data_ != nullptr) cudaFreeHost(data_);
}

void copy_to_device(void* to, const void* from, std::size_t n_bytes, const Stream& stream) {
  cuda_check(cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyHostToDevice, stream.get()),
             "copying to the device");
}
void copy_to_host(void* to, const void* from, std::size_t n_bytes, const Stream& stream) {
  cuda_check(cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyDeviceToHost, stream.get()),
             "copying from the device");
}
void copy_on_device(void* to, const void* from, std::size_t n_bytes, const Stream& stream) {
  cuda_check(cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyDeviceToDevice, stream.get()),
             "copying on the device");
}
void fill_zero(void* to, std::size_t n_bytes, const Stream& stream) {
  cuda_check(cudaMemsetAsync(to, 0, n_bytes, stream.get()), "clearing device memory");
}

}  // namespace jemm::gpu

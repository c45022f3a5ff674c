// Merged vision rows and their memory.
#include "gpu/vision_rows.h"

#include <new>
#include <span>
#include <utility>

#include "base/error.h"
#include "checkpoint/dtype.h"

namespace jemm::gpu {
namespace {

constexpr std::size_t kGrain = std::size_t{1} << 20;

DType dtype_of(Element element) {
  return element == Element::kBf16 ? DType::kBf16 : DType::kF32;
}

}  // namespace

DeviceBytes RowMemory::take(std::size_t n_bytes) {
  const std::lock_guard lock(mutex_);
  const auto at = free_.lower_bound(n_bytes);
  if (at != free_.end() && at->first <= 2 * n_bytes + kGrain) {
    DeviceBytes bytes = std::move(at->second);
    free_bytes_ -= bytes.size();
    free_.erase(at);
    return bytes;
  }
  const std::size_t n = (n_bytes + kGrain - 1) / kGrain * kGrain;
  try {
    return DeviceBytes(n, "the rows of an image");
  } catch (const Error&) {
    if (free_.empty()) throw;
    free_.clear();
    free_bytes_ = 0;
    return DeviceBytes(n, "the rows of an image");
  }
}

void RowMemory::give_back(DeviceBytes bytes) noexcept {
  const std::lock_guard lock(mutex_);
  const std::size_t size = bytes.size();
  if (free_bytes_ + size > kMostKept) return;
  try {
    free_.emplace(size, std::move(bytes));
    free_bytes_ += size;
  } catch (const std::bad_alloc&) {  // then it is freed
  }
}

CudaVisionRows::CudaVisionRows(std::shared_ptr<RowMemory> memory, std::int64_t n_rows,
                               std::int64_t width, Element element)
    : memory_(std::move(memory)),
      n_rows_(n_rows),
      width_(width),
      element_(element),
      bytes_(memory_->take(size_bytes())) {}

CudaVisionRows::~CudaVisionRows() {
  memory_->give_back(std::move(bytes_));
}

std::size_t CudaVisionRows::size_bytes() const {
  return static_cast<std::size_t>(n_rows_ * width_) * dtype_size(dtype_of(element_));
}

std::vector<float> CudaVisionRows::floats(const Stream& stream) const {
  std::vector<std::byte> stored(size_bytes());
  copy_to_host(stored.data(), values(), stored.size(), stream);
  stream.synchronize("the vision tower");
  std::vector<float> floats(static_cast<std::size_t>(n_rows_ * width_));
  widen(dtype_of(element_), stored, floats);
  return floats;
}

}  // namespace jemm::gpu

// Staging of stored bytes, and the formula for what is large.
#include "gpu/loader.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include <cuda_bf16.h>

#include "base/blocks.h"
#include "base/error.h"
#include "checkpoint/synthetic.h"
#include "gpu/kernels/fill.h"

namespace jemm::gpu {
namespace {

StoredType stored_type(DType type) {
  switch (type) {
    case DType::kBf16:
      return StoredType::kBf16;
    case DType::kF16:
      return StoredType::kF16;
    case DType::kF32:
      return StoredType::kF32;
  }
  fail(ErrorKind::kInput, "a tensor of unknown type");
}

}  // namespace

Loader::Loader(const Checkpoint& checkpoint)
    : checkpoint_(checkpoint), registry_(checkpoint.config()), device_(current_device()) {
  for (Stage& stage : stages_) stage.free.record(stream_);
}

const Shape& Loader::shape(const std::string& name) const {
  const TensorInfo* info = registry_.find(name);
  if (info == nullptr) fail(ErrorKind::kInput, "the model has no tensor {}", name);
  return info->shape;
}

template <typename T>
void Loader::stage(const std::byte* from, DType type, std::int64_t n, T* to) {
  const std::size_t size = dtype_size(type);
  const auto part = static_cast<std::int64_t>(kStageBytes / size);
  const auto n_parts = static_cast<std::size_t>((n + part - 1) / part);
  in_threads(n_parts, kStages, [&](std::size_t i) {
    cuda_check(cudaSetDevice(device_), "choosing the device");  // of this thread
    const std::int64_t first = static_cast<std::int64_t>(i) * part;
    const std::int64_t count = std::min(part, n - first);
    const std::size_t n_bytes = static_cast<std::size_t>(count) * size;
    Stage& stage = stages_[i % kStages];
    const std::lock_guard lock(stage.mutex);
    stage.free.wait();
    std::memcpy(stage.host.data(), from + static_cast<std::size_t>(first) * size, n_bytes);
    copy_to_device(stage.device.data(), stage.host.data(), n_bytes, stream_);
    convert(stage.device.data(), stored_type(type), count, to + first, stream_.get());
    stage.free.record(stream_);
  });
}

template <typename T>
void Loader::elements(const std::string& name, std::int64_t first, std::int64_t n, T* to) {
  const TensorInfo* info = registry_.find(name);
  if (info == nullptr) fail(ErrorKind::kInput, "the model has no tensor {}", name);
  const std::optional<std::uint32_t> seed = checkpoint_.synthetic_seed();
  if (seed) {
    const SyntheticFormula formula = synthetic_formula(*info, *seed);
    if (formula.kind == SyntheticFormula::Kind::kSpread) {
      fill_by_formula({.name_hash = formula.name_hash,
                       .first = first,
                       .centre = formula.centre,
                       .width = formula.width},
                      n, to, stream_.get());
      return;
    }
  }
  const Tensor tensor = checkpoint_.tensor(name);
  stage(tensor.data.bytes.data() + static_cast<std::size_t>(first) * dtype_size(tensor.dtype),
        tensor.dtype, n, to);
}

template <typename T>
std::int64_t Loader::tensor(const std::string& name, T* to) {
  const std::int64_t n = element_count(shape(name));
  elements(name, 0, n, to);
  return n;
}

std::vector<float> Loader::floats(const std::string& name) const {
  const Tensor tensor = checkpoint_.tensor(name);
  std::vector<float> values(static_cast<std::size_t>(tensor.size()));
  widen(tensor.dtype, tensor.data.bytes, values);
  return values;
}

template <typename T>
void Loader::values(const float* from, std::int64_t n, T* to) {
  stage(reinterpret_cast<const std::byte*>(from), DType::kF32, n, to);
}

DeviceArray<float> Loader::values(const std::vector<float>& from) {
  DeviceArray<float> to(static_cast<std::int64_t>(from.size()), "small weights");
  values(from.data(), static_cast<std::int64_t>(from.size()), to.data());
  return to;
}

void Loader::finish() {
  stream_.synchronize("loading the weights");
}

template void Loader::elements(const std::string&, std::int64_t, std::int64_t, float*);
template void Loader::elements(const std::string&, std::int64_t, std::int64_t, __nv_bfloat16*);
template std::int64_t Loader::tensor(const std::string&, float*);
template std::int64_t Loader::tensor(const std::string&, __nv_bfloat16*);
template void Loader::values(const float*, std::int64_t, float*);
template void Loader::values(const float*, std::int64_t, __nv_bfloat16*);

}  // namespace jemm::gpu

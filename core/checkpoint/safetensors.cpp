// Checks that the tensors cover the file, and finds them by name.
#include "checkpoint/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

#include "base/error.h"
#include "checkpoint/json_object.h"
#include "checkpoint/safetensors_header.h"

namespace jemm {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeader = 100'000'000;  // the library's limit

std::string_view header_text(const Blob& file, const std::string& name) {
  const std::size_t size = file.bytes.size();
  if (size < kLengthBytes) {
    fail(ErrorKind::kInput, "{}: {} bytes are too few for a safetensors file", name, size);
  }
  std::uint64_t length = 0;
  std::memcpy(&length, file.bytes.data(), sizeof length);
  if (length > kMaxHeader) {
    fail(ErrorKind::kInput, "{}: a header of {} bytes is over the limit of {}", name, length,
         kMaxHeader);
  }
  if (length > size - kLengthBytes) {
    fail(ErrorKind::kInput, "{}: a header of {} bytes does not fit in a file of {}", name, length,
         size);
  }
  return file.text().substr(kLengthBytes, static_cast<std::size_t>(length));
}

/// Bytes that the description's shape and type need; none when the number overflows or is no whole
/// number of bytes.
std::optional<std::uint64_t> needed_bytes(const SafetensorsDescription& tensor) {
  std::uint64_t bits = 1;
  for (const std::uint64_t extent : tensor.shape) {
    if (__builtin_mul_overflow(bits, extent, &bits)) return std::nullopt;
  }
  if (__builtin_mul_overflow(bits, static_cast<std::uint64_t>(tensor.dtype_bits), &bits)) {
    return std::nullopt;
  }
  if (bits % 8 != 0) return std::nullopt;
  return bits / 8;
}

SafetensorsEntry checked_entry(SafetensorsDescription& tensor, std::size_t data_start,
                               const std::string& file) {
  SafetensorsEntry entry;
  entry.name = std::move(tensor.name);
  entry.dtype = tensor.dtype;
  entry.begin = data_start + static_cast<std::size_t>(tensor.offsets[0]);
  entry.end = data_start + static_cast<std::size_t>(tensor.offsets[1]);
  for (const std::uint64_t extent : tensor.shape) {
    // Only an empty tensor can have such an extent; none of a model's is empty.
    if (extent > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      fail(ErrorKind::kInput, "{}: tensor {}: extent {} is too large", file, in_quotes(entry.name),
           extent);
    }
    entry.shape.push_back(static_cast<std::int64_t>(extent));
  }
  return entry;
}

}  // namespace

SafetensorsFile::SafetensorsFile(Blob file, std::string name)
    : file_(std::move(file)), name_(std::move(name)) {
  const std::string_view header = header_text(file_, name_);
  std::vector<SafetensorsDescription> tensors = parse_safetensors_header(header, name_);
  const std::size_t data_start = kLengthBytes + header.size();
  const std::size_t data_size = file_.bytes.size() - data_start;

  std::sort(tensors.begin(), tensors.end(),
            [](const auto& a, const auto& b) { return a.offsets < b.offsets; });
  std::uint64_t covered = 0;
  for (SafetensorsDescription& tensor : tensors) {
    const auto [begin, end] = tensor.offsets;
    if (begin != covered || end < begin || end > data_size) {
      fail(
          ErrorKind::kInput,
          "{}: tensor {}: data_offsets [{}, {}] do not follow the {} bytes before them in {} bytes "
          "of data",
          name_, in_quotes(tensor.name), begin, end, covered, data_size);
    }
    if (needed_bytes(tensor) != end - begin) {
      fail(ErrorKind::kInput, "{}: tensor {}: {} bytes do not hold {} [{}]", name_,
           in_quotes(tensor.name), end - begin, tensor.dtype, fmt::join(tensor.shape, ", "));
    }
    covered = end;
    entries_.push_back(checked_entry(tensor, data_start, name_));
  }
  if (covered != data_size) {
    fail(ErrorKind::kInput, "{}: {} bytes of data, but the tensors cover {}", name_, data_size,
         covered);
  }

  const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
  std::sort(entries_.begin(), entries_.end(), by_name);
  const auto twice =
      std::adjacent_find(entries_.begin(), entries_.end(),
                         [](const auto& a, const auto& b) { return a.name == b.name; });
  if (twice != entries_.end()) {
    fail(ErrorKind::kInput, "{}: tensor {} is given twice", name_, in_quotes(twice->name));
  }
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view tensor) const {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), tensor,
                                   [](const auto& e, std::string_view n) { return e.name < n; });
  return at != entries_.end() && at->name == tensor ? &*at : nullptr;
}

DType SafetensorsFile::weight_type(const SafetensorsEntry& entry) const {
  for (const DType dtype : {DType::kBf16, DType::kF16, DType::kF32}) {
    if (entry.dtype == dtype_name(dtype)) return dtype;
  }
  fail(ErrorKind::kInput, "{}: tensor {}: weights must be BF16, F16 or F32, not {}", name_,
       in_quotes(entry.name), entry.dtype);
}

Tensor SafetensorsFile::tensor(const SafetensorsEntry& entry) const {
  Tensor result{weight_type(entry),
                entry.shape,
                {file_.bytes.subspan(entry.begin, entry.end - entry.begin), file_.owner}};
  if (reinterpret_cast<std::uintptr_t>(result.data.bytes.data()) % dtype_size(result.dtype) != 0) {
    auto copy = std::make_shared<std::vector<std::byte>>(result.data.bytes.begin(),
                                                         result.data.bytes.end());
    result.data = {std::span<const std::byte>(*copy), copy};
  }
  return result;
}

}  // namespace jemm

// Ranges of a file along its tensors; exponents that are all ones.
#include "checkpoint/weight_scan.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/sha256.h"
#include "checkpoint/base_weights.h"
#include "checkpoint/json_object.h"

namespace jemm {
namespace {

/// All ones in the exponent: infinity or not a number.
template <typename T, T Exponent>
std::size_t find_not_finite(std::span<const std::byte> elements) {
  const std::size_t count = elements.size() / sizeof(T);
  const auto is_finite = [&elements](std::size_t i) {
    T bits = 0;
    std::memcpy(&bits, elements.data() + i * sizeof(T), sizeof bits);
    return (bits & Exponent) != Exponent;
  };
  // Runs without a branch inside, which the compiler makes vectors of.
  constexpr std::size_t kRun = 4096;
  for (std::size_t begin = 0; begin < count; begin += kRun) {
    const std::size_t end = std::min(count, begin + kRun);
    T n_bad = 0;
    for (std::size_t i = begin; i < end; ++i) n_bad = static_cast<T>(n_bad + !is_finite(i));
    if (n_bad == 0) continue;
    for (std::size_t i = begin; i < end; ++i) {
      if (!is_finite(i)) return i;
    }
  }
  return count;
}

struct ScanRange {
  FileRange range;
  const SafetensorsEntry* entry;  // null: the header, or a tensor that is not looked at
};

/// The whole file in order; a range lies in one tensor.
std::vector<ScanRange> scan_ranges(const SafetensorsFile& file) {
  std::vector<const SafetensorsEntry*> entries;
  for (const SafetensorsEntry& entry : file.entries()) entries.push_back(&entry);
  std::sort(entries.begin(), entries.end(),
            [](const auto* a, const auto* b) { return a->begin < b->begin; });
  std::vector<ScanRange> ranges;
  const auto add = [&ranges](std::size_t begin, std::size_t end, const SafetensorsEntry* entry) {
    for (const FileRange& range : block_ranges(begin, end)) ranges.push_back({range, entry});
  };
  std::size_t covered = entries.empty() ? file.blob().bytes.size() : entries.front()->begin;
  add(0, covered, nullptr);
  for (const SafetensorsEntry* entry : entries) {
    add(entry->begin, entry->end, is_ignored_tensor(entry->name) ? nullptr : entry);
  }
  return ranges;
}

/// Takes the ranges in order.
class Scan {
 public:
  Scan(const SafetensorsFile& file, const std::vector<ScanRange>& ranges)
      : file_(file), ranges_(ranges) {}

  void take(std::size_t i, std::span<const std::byte> bytes) {
    hash_.update(bytes);
    const auto& [range, entry] = ranges_[i];
    if (entry == nullptr) return;
    const DType dtype = file_.weight_type(*entry);
    check_finite(file_.name(), entry->name, dtype, bytes,
                 (range.offset - entry->begin) / dtype_size(dtype));
  }
  std::string hex() { return hash_.hex(); }

 private:
  const SafetensorsFile& file_;
  const std::vector<ScanRange>& ranges_;
  Sha256 hash_;
};

}  // namespace

std::size_t first_not_finite(DType dtype, std::span<const std::byte> elements) {
  switch (dtype) {
    case DType::kBf16:
      return find_not_finite<std::uint16_t, 0x7F80>(elements);
    case DType::kF16:
      return find_not_finite<std::uint16_t, 0x7C00>(elements);
    case DType::kF32:
      return find_not_finite<std::uint32_t, 0x7F800000>(elements);
  }
  return 0;
}

void check_finite(const std::string& file, std::string_view tensor, DType dtype,
                  std::span<const std::byte> elements, std::uint64_t first) {
  const std::size_t at = first_not_finite(dtype, elements);
  if (at == elements.size() / dtype_size(dtype)) return;
  fail(ErrorKind::kInput, "{}: tensor {}: element {} is not finite", file, in_quotes(tensor),
       first + at);
}

std::string scan_mapped(const SafetensorsFile& file) {
  const std::vector<ScanRange> ranges = scan_ranges(file);
  Scan scan(file, ranges);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const FileRange& range = ranges[i].range;
    scan.take(i, file.blob().bytes.subspan(static_cast<std::size_t>(range.offset), range.size));
  }
  return scan.hex();
}

std::string scan_blocks(const SafetensorsFile& file, const std::filesystem::path& path,
                        const OnBytes& on_bytes) {
  const std::vector<ScanRange> ranges = scan_ranges(file);
  std::vector<FileRange> reads;
  for (const ScanRange& range : ranges) reads.push_back(range.range);
  Scan scan(file, ranges);
  for_each_range(BlockFile(path), reads, [&](std::size_t i, std::span<const std::byte> bytes) {
    scan.take(i, bytes);
    on_bytes(bytes.size());
  });
  return scan.hex();
}

}  // namespace jemm

// One pass over a weight file: its SHA-256, and that every value is finite.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "base/blocks.h"
#include "checkpoint/safetensors.h"

namespace jemm {

/// Index of the first element that is an infinity or not a number; elements.size() / size of the
/// type when there is none. Any alignment.
std::size_t first_not_finite(DType dtype, std::span<const std::byte> elements);

/// Throws Error(kInput) naming `file`, `tensor` and the element: `first` is the first one's index.
void check_finite(const std::string& file, std::string_view tensor, DType dtype,
                  std::span<const std::byte> elements, std::uint64_t first);

/// Told how many more bytes were read; may throw to end the pass.
using OnBytes = std::function<void(std::uint64_t)>;

/// SHA-256 of the file's mapped bytes. Throws Error(kInput) for a value that is not finite, in
/// tensors that are not passed over (is_ignored_tensor).
std::string scan_mapped(const SafetensorsFile& file);
/// The same, read from `path` block by block, so that memory does not grow with the file.
std::string scan_blocks(const SafetensorsFile& file, const std::filesystem::path& path,
                        const OnBytes& on_bytes);

}  // namespace jemm

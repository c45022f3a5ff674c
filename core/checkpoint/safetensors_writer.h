// Writes safetensors files. Knows no models.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "checkpoint/output_tensor.h"
#include "checkpoint/weight_scan.h"

namespace jemm {

/// The file's first bytes: length and JSON, padded so that the data begins at a multiple of 8.
std::string safetensors_header(std::span<const OutputTensor> tensors);

/// Writes the tensors in their order, a block of rows at a time, and returns the file's SHA-256.
/// Throws Error(kInput) for a value that is not finite, Error(kIo).
std::string write_safetensors(const std::filesystem::path& path,
                              std::span<const OutputTensor> tensors, const OnBytes& on_bytes);

}  // namespace jemm

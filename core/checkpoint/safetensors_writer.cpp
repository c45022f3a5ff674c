// Header and data of a safetensors file, in one pass.
#include "checkpoint/safetensors_writer.h"

#include <algorithm>
#include <memory>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/new_file.h"
#include "base/sha256.h"

namespace jemm {

std::string safetensors_header(std::span<const OutputTensor> tensors) {
  // By hand: an object that keeps its order takes quadratic time to fill.
  std::string text = R"({"__metadata__":{"format":"pt"})";
  std::size_t offset = 0;
  for (const OutputTensor& tensor : tensors) {
    const std::size_t end = offset + tensor.size_bytes();
    text += fmt::format(R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                        nlohmann::json(tensor.name).dump(), dtype_name(tensor.dtype),
                        fmt::join(tensor.shape, ","), offset, end);
    offset = end;
  }
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

std::string write_safetensors(const std::filesystem::path& path,
                              std::span<const OutputTensor> tensors, const OnBytes& on_bytes) {
  std::size_t largest = 0;
  for (const OutputTensor& tensor : tensors) largest = std::max(largest, tensor.size_bytes());
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(std::min(largest, kBlockBytes));
  NewFile file(path);
  Sha256 hash;
  const std::string header = safetensors_header(tensors);
  file.write(header);
  hash.update(header);
  for (const OutputTensor& tensor : tensors) {
    const std::size_t row_bytes = tensor.row_bytes();
    if (row_bytes == 0) continue;
    // The config's bounds keep a row far below a block.
    const auto rows_a_block = static_cast<std::int64_t>(kBlockBytes / row_bytes);
    if (rows_a_block == 0) fail(ErrorKind::kInput, "a row of {} is too long", tensor.name);
    std::int64_t n = 0;
    for (std::int64_t first = 0; first < tensor.n_rows(); first += n) {
      n = std::min(rows_a_block, tensor.n_rows() - first);
      const std::span bytes(memory.get(), static_cast<std::size_t>(n) * row_bytes);
      tensor.make(first, n, bytes);
      check_finite(path.string(), tensor.name, tensor.dtype, bytes,
                   static_cast<std::uint64_t>(first) * (row_bytes / dtype_size(tensor.dtype)));
      hash.update(bytes);
      file.write(bytes);
      on_bytes(bytes.size());
    }
  }
  file.finish();
  return hash.hex();
}

}  // namespace jemm

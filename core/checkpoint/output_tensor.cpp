// Rows of stored, formula-made, chosen and merged tensors.
#include "checkpoint/output_tensor.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.h"
#include "checkpoint/synthetic.h"

namespace jemm {
namespace {

/// sum[j] = sum over k of b[k] * a[k][j]; a [rank, sum.size()].
void combine(std::span<const float> b, const float* a, std::span<float> sum) {
  std::fill(sum.begin(), sum.end(), 0.0F);
  for (std::size_t k = 0; k < b.size(); ++k) {
    const float factor = b[k];
    const float* row = a + k * sum.size();
    for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += factor * row[j];
  }
}

std::span<const float> floats_of(const Tensor& tensor) {
  return {reinterpret_cast<const float*>(tensor.data.bytes.data()),
          static_cast<std::size_t>(tensor.size())};
}

/// Rows [first, first + n) of BF16(W + scale * (B A)).
void merge_rows(const OutputTensor& weight, const LoraPair& pair, std::int64_t first,
                std::int64_t n, std::span<std::byte> out) {
  const auto cols = static_cast<std::size_t>(weight.shape[1]);
  const auto rank = static_cast<std::size_t>(pair.a.shape[0]);
  const auto scale = static_cast<float>(pair.scale);
  const float* a = floats_of(pair.a).data();
  const std::span<const float> b = floats_of(pair.b);
  // Runs of rows, so that a file is not read a row at a time.
  const std::int64_t run = std::max<std::int64_t>(1, (1 << 20) / static_cast<std::int64_t>(cols));
  std::vector<std::byte> stored(static_cast<std::size_t>(std::min(run, n)) * weight.row_bytes());
  std::vector<float> row(cols), update(cols);
  std::vector<std::uint16_t> rounded(cols);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t in_run = i % run;
    if (in_run == 0) {
      const std::int64_t n_rows = std::min(run, n - i);
      weight.make(first + i, n_rows,
                  std::span(stored).first(static_cast<std::size_t>(n_rows) * weight.row_bytes()));
    }
    widen(weight.dtype,
          std::span(stored).subspan(static_cast<std::size_t>(in_run) * weight.row_bytes(),
                                    weight.row_bytes()),
          row);
    combine(b.subspan(static_cast<std::size_t>(first + i) * rank, rank), a, update);
    for (std::size_t j = 0; j < cols; ++j) rounded[j] = float_to_bf16(row[j] + scale * update[j]);
    std::memcpy(out.data() + static_cast<std::size_t>(i) * cols * 2, rounded.data(), cols * 2);
  }
}

}  // namespace

OutputTensor stored_tensor(std::shared_ptr<const BlockFile> file, const SafetensorsFile& header,
                           const SafetensorsEntry& entry) {
  OutputTensor tensor{entry.name, header.weight_type(entry), entry.shape, {}};
  tensor.make = [file = std::move(file), begin = entry.begin, row_bytes = tensor.row_bytes()](
                    std::int64_t first, std::int64_t, std::span<std::byte> out) {
    file->read(begin + static_cast<std::uint64_t>(first) * row_bytes, out);
  };
  return tensor;
}

OutputTensor formula_tensor(const TensorInfo& info, std::uint32_t seed) {
  OutputTensor tensor{info.name, DType::kBf16, info.shape, {}};
  const std::uint64_t row_elements = tensor.row_bytes() / dtype_size(tensor.dtype);
  tensor.make = [info, seed, row_elements](std::int64_t first, std::int64_t,
                                           std::span<std::byte> out) {
    synthetic_elements(info, seed, static_cast<std::uint64_t>(first) * row_elements, out);
  };
  return tensor;
}

OutputTensor label_rows(OutputTensor matrix, std::span<const std::int32_t> ids) {
  for (const std::int32_t id : ids) {
    if (id >= 0 && id < matrix.n_rows()) continue;
    fail(ErrorKind::kInput, "label token {} is outside the head's {} rows", id, matrix.n_rows());
  }
  OutputTensor rows{std::string(kLabelRows),
                    matrix.dtype,
                    {static_cast<std::int64_t>(ids.size()), matrix.shape[1]},
                    {}};
  rows.make = [matrix = std::move(matrix), ids = std::vector(ids.begin(), ids.end())](
                  std::int64_t first, std::int64_t n, std::span<std::byte> out) {
    const std::size_t row_bytes = matrix.row_bytes();
    for (std::int64_t i = 0; i < n; ++i) {
      matrix.make(ids[static_cast<std::size_t>(first + i)], 1,
                  out.subspan(static_cast<std::size_t>(i) * row_bytes, row_bytes));
    }
  };
  return rows;
}

OutputTensor merged_tensor(OutputTensor weight, std::function<LoraPair()> pair) {
  OutputTensor merged{weight.name, DType::kBf16, weight.shape, {}};
  merged.make = [weight = std::move(weight), pair = std::move(pair),
                 held = std::optional<LoraPair>()](std::int64_t first, std::int64_t n,
                                                   std::span<std::byte> out) mutable {
    if (!held) held = pair();
    merge_rows(weight, *held, first, n, out);
    if (first + n == weight.n_rows()) held.reset();
  };
  return merged;
}

}  // namespace jemm

#include "bench/operations.h"

#include <algorithm>
#include <numeric>

#include "checkpoint/registry.h"

namespace jemm {
namespace {

constexpr double kLabels = 32;

}  // namespace

std::int64_t Work::n_rows() const {
  return std::accumulate(pass_rows.begin(), pass_rows.end(), std::int64_t{0});
}

void Work::add(const Forest& forest) {
  pass_rows.push_back(forest.n_rows());
  n_read += static_cast<std::int64_t>(forest.read_rows.size());
  for (const Segment& segment : forest.segments) {
    const auto n = static_cast<double>(segment.n_rows);
    n_seen += n * static_cast<double>(segment.n_before) + n * (n + 1) / 2;
  }
}

void Work::add(std::span<const ImagePatches> images) {
  for (const ImagePatches& image : images) {
    const std::int64_t n = image.grid_thw[1] * image.grid_thw[2];
    n_patches += n;
    n_patches_seen += static_cast<double>(n) * static_cast<double>(n);
  }
}

OperationCount::OperationCount(const ModelConfig& config) {
  const TensorRegistry registry(config);
  const VisionConfig& vision = config.vision;
  const double merged = static_cast<double>(vision.merge_size * vision.merge_size);
  for (const TensorInfo& tensor : registry.tensors()) {
    if (tensor.role != TensorRole::kLinear && tensor.role != TensorRole::kConvolution) continue;
    const double operations = 2 * static_cast<double>(element_count(tensor.shape));
    if (tensor.name.find("visual.merger.") != std::string::npos) {
      a_patch_ += operations / merged;  // on rows of several patches
    } else if (tensor.name.find("visual.") != std::string::npos) {
      a_patch_ += operations;
    } else {
      a_row_ += operations;
    }
  }
  const TextConfig& text = config.text;
  const auto n_full = static_cast<double>(
      std::count(text.layer_types.begin(), text.layer_types.end(), LayerType::kFullAttention));
  const double n_linear = static_cast<double>(text.n_layers()) - n_full;
  a_row_ += n_linear * 7 *
            static_cast<double>(text.n_value_heads * text.key_head_dim * text.value_head_dim);
  a_row_seen_ = n_full * 4 * static_cast<double>(text.n_heads * text.head_dim);
  a_read_row_ = 2 * kLabels * static_cast<double>(text.hidden_size);
  a_patch_seen_ = 4 * static_cast<double>(vision.depth * vision.hidden_size);
}

double OperationCount::operations(const Work& work) const {
  return a_row_ * static_cast<double>(work.n_rows()) + a_row_seen_ * work.n_seen +
         a_read_row_ * static_cast<double>(work.n_read) +
         a_patch_ * static_cast<double>(work.n_patches) + a_patch_seen_ * work.n_patches_seen;
}

}  // namespace jemm

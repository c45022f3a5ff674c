// The vision tower's forward: kernels and products in the reference's order.
#include "gpu/vision.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include <cuda_bf16.h>

#include "base/error.h"
#include "gpu/kernels/fill.h"
#include "gpu/reserve.h"

namespace jemm::gpu {
namespace {

constexpr float kEps = 1e-6f;  // of every layer norm; fixed in the reference

// Patches beyond which images go through the tower in turn, so that memory stays bounded. Products
// are long before as fast as they get.
constexpr std::int64_t kBatchPatches = 8192;

void check_grid(const ImagePatches& image, const VisionConfig& config, std::int64_t n_values) {
  constexpr std::int64_t kMaxSide = 1 << 20;
  const auto [frames, rows, columns] = image.grid_thw;
  const bool fits = frames == 1 && rows > 0 && rows <= kMaxSide && rows % config.merge_size == 0 &&
                    columns > 0 && columns <= kMaxSide && columns % config.merge_size == 0;
  if (!fits || image.values.size() != static_cast<std::size_t>(rows * columns * n_values)) {
    fail(ErrorKind::kDevice, "vision: {} values are no {} x {} x {} patches of {}",
         image.values.size(), frames, rows, columns, n_values);
  }
}

std::int64_t n_patches(const ImagePatches& image) {
  return image.grid_thw[1] * image.grid_thw[2];
}

/// The places of an image's patches in their order: [rows / merge, columns / merge, merge, merge].
void add_places(const ImagePatches& image, std::int64_t merge, std::vector<PatchPlace>& places) {
  const auto n_rows = static_cast<std::int32_t>(image.grid_thw[1]);
  const auto n_columns = static_cast<std::int32_t>(image.grid_thw[2]);
  const auto step = static_cast<std::int32_t>(merge);
  for (std::int32_t top = 0; top < n_rows; top += step) {
    for (std::int32_t left = 0; left < n_columns; left += step) {
      for (std::int32_t i = 0; i < step * step; ++i) {
        places.push_back({top + i / step, left + i % step, n_rows, n_columns});
      }
    }
  }
}

/// Turns of every coordinate up to n - 1 by theta^(-4i / head_dim), i < head_dim / 4. Frequencies
/// and angles are float32 as in the reference (Qwen3_5VisionRotaryEmbedding).
std::vector<Turn> make_turns(const VisionConfig& config, std::int64_t n) {
  const std::int64_t half = config.hidden_size / config.n_heads / 2, quarter = half / 2;
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < quarter; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(half);
    frequencies.push_back(
        1.0f / static_cast<float>(std::pow(config.rope_theta, static_cast<double>(exponent))));
  }
  std::vector<Turn> turns;
  for (std::int64_t coordinate = 0; coordinate < n; ++coordinate) {
    for (const float frequency : frequencies) {
      const auto angle = static_cast<double>(static_cast<float>(coordinate) * frequency);
      turns.push_back({static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))});
    }
  }
  return turns;
}

template <typename Value>
void upload(DeviceArray<Value>& to, const std::vector<Value>& from, const Stream& stream) {
  copy_to_device(to.data(), from.data(), from.size() * sizeof(Value), stream);
}

}  // namespace

template <typename T>
VisionTower<T>::VisionTower(Loader& loader, Gemms& gemms, const Stream& stream)
    : config_(loader.checkpoint().config().vision), gemms_(gemms), stream_(stream) {
  const std::int64_t head_dim = config_.hidden_size / config_.n_heads;
  if (head_dim > kMaxVisionHeadDim || config_.hidden_size > kMaxNormWidth) {
    fail(ErrorKind::kDevice, "vision: {} heads of {} values are more than the CUDA engine holds",
         config_.n_heads, head_dim);
  }
  weights_ = load_vision_weights<T>(loader);
}

template <typename T>
auto VisionTower<T>::run(std::span<const ImagePatches> images) -> Rows {
  for (const ImagePatches& image : images) check_grid(image, config_, weights_.patch_embed.n_in);
  Rows results;
  while (!images.empty()) {
    std::size_t n = 1;
    for (std::int64_t sum = n_patches(images[0]); n < images.size(); ++n) {
      sum += n_patches(images[n]);
      if (sum > kBatchPatches) break;
    }
    run_batch(images.first(n), results);
    images = images.subspan(n);
  }
  stream_.synchronize("the vision tower");
  return results;
}

template <typename T>
void VisionTower<T>::run_batch(std::span<const ImagePatches> images, Rows& results) {
  place(images);
  embed(images);
  norm(weights_.blocks.front().norm1, nullptr);
  for (std::size_t i = 0; i < weights_.blocks.size(); ++i) {
    const VisionBlockWeights<T>& block = weights_.blocks[i];
    attend(block);
    norm(block.norm2, update_.data());

    apply(block.fc1, n_patches_, normed_.data(), inner_.data());
    gelu_tanh(inner_.data(), n_patches_ * block.fc1.n_out, stream_.get());
    apply(block.fc2, n_patches_, inner_.data(), update_.data());
    const bool is_last = i + 1 == weights_.blocks.size();
    norm(is_last ? weights_.merger_norm : weights_.blocks[i + 1].norm1, update_.data());
  }
  merge();
  hand_out(images, results);
}

/// All that depends on the images' sizes alone.
template <typename T>
void VisionTower<T>::place(std::span<const ImagePatches> images) {
  std::vector<PatchPlace> places;
  std::vector<ImageTile> tiles;
  std::int64_t side = 0;
  for (const ImagePatches& image : images) {
    const auto begin = static_cast<std::int32_t>(places.size());
    add_places(image, config_.merge_size, places);
    const std::int32_t n = static_cast<std::int32_t>(places.size()) - begin;
    for (std::int32_t query = 0; query < n; query += kImageQueries) {
      tiles.push_back({begin, n, query});
    }
    side = std::max({side, image.grid_thw[1], image.grid_thw[2]});
  }
  n_patches_ = static_cast<std::int64_t>(places.size());
  n_tiles_ = static_cast<std::int64_t>(tiles.size());
  const std::vector<Turn> turns = make_turns(config_, side);
  reserve(std::ssize(turns));
  upload(places_, places, stream_);
  upload(tiles_, tiles, stream_);
  upload(turns_, turns, stream_);
}

template <typename T>
void VisionTower<T>::reserve(std::int64_t n_turns) {
  const std::int64_t width = config_.hidden_size, n_values = n_patches_ * weights_.patch_embed.n_in;
  const auto each = [&](const auto& visit) {
    visit(places_, n_patches_);
    visit(tiles_, n_tiles_);
    visit(turns_, n_turns);
    visit(values_, n_values);
    if constexpr (!std::is_same_v<T, float>) visit(patches_, n_values);
    visit(x_, n_patches_ * width);
    visit(normed_, n_patches_ * width);
    visit(update_, n_patches_ * width);
    visit(qkv_, n_patches_ * 3 * width);
    visit(inner_, n_patches_ * std::max(config_.intermediate_size, width));
    visit(merged_, n_patches_ / patches_a_row() * config_.out_hidden_size);
  };
  reserve_together("images", each, [&](std::size_t n_wanted, std::size_t n_freed) {
    check_free_memory(n_wanted, n_freed, "images");
    stream_.synchronize("the vision tower");  // the batch before
  });
}

/// x = W patch + bias + position.
template <typename T>
void VisionTower<T>::embed(std::span<const ImagePatches> images) {
  const std::int64_t n = n_patches_ * weights_.patch_embed.n_in;
  float* to = values_.data();
  for (const ImagePatches& image : images) {
    copy_to_device(to, image.values.data(), image.values.size_bytes(), stream_);
    to += image.values.size();
  }
  const T* patches = nullptr;
  if constexpr (std::is_same_v<T, float>) {
    patches = values_.data();
  } else {
    convert(values_.data(), StoredType::kF32, n, patches_.data(), stream_.get());
    patches = patches_.data();
  }
  apply(weights_.patch_embed, n_patches_, patches, x_.data());
  const auto side = std::llround(std::sqrt(static_cast<double>(config_.n_position_embeddings)));
  add_positions(weights_.position_grid, side, places_.data(), x_.data(), n_patches_,
                config_.hidden_size, stream_.get());
}

/// update = proj(attention of every image's patches over all of them); normed is used up.
template <typename T>
void VisionTower<T>::attend(const VisionBlockWeights<T>& block) {
  const std::int64_t head_dim = config_.hidden_size / config_.n_heads;
  apply(block.qkv, n_patches_, normed_.data(), qkv_.data());
  rotate_patches(places_.data(), turns_.data(), qkv_.data(), n_patches_, config_.n_heads, head_dim,
                 stream_.get());
  attend_images(ImageAttention<T>{.qkv = qkv_.data(),
                                  .tiles = tiles_.data(),
                                  .n_tiles = n_tiles_,
                                  .n_heads = config_.n_heads,
                                  .head_dim = head_dim,
                                  .attended = normed_.data()},
                stream_.get());
  apply(block.proj, n_patches_, normed_.data(), update_.data());
}

/// merged = fc2(gelu(fc1(the M normed patches of a merged row, side by side))).
template <typename T>
void VisionTower<T>::merge() {
  const std::int64_t n_rows = n_patches_ / patches_a_row();
  apply(weights_.merger_fc1, n_rows, normed_.data(), inner_.data());
  gelu_erf(inner_.data(), n_rows * weights_.merger_fc1.n_out, stream_.get());
  apply(weights_.merger_fc2, n_rows, inner_.data(), merged_.data());
}

template <typename T>
void VisionTower<T>::hand_out(std::span<const ImagePatches> images, Rows& results) {
  const T* from = merged_.data();
  for (const ImagePatches& image : images) {
    const std::int64_t n_rows = n_patches(image) / patches_a_row();
    const auto rows =
        std::make_shared<CudaVisionRows>(memory_, n_rows, config_.out_hidden_size, element_of<T>());
    copy_on_device(rows->values(), from, rows->size_bytes(), stream_);
    from += n_rows * config_.out_hidden_size;
    results.push_back(rows);
  }
}

/// x += update where it is given, normed = layer norm of x.
template <typename T>
void VisionTower<T>::norm(const LayerNormWeights<T>& weights, const T* update) {
  layer_norm(LayerNorm<T>{.x = x_.data(),
                          .update = update,
                          .weight = weights.weight,
                          .bias = weights.bias,
                          .eps = kEps,
                          .y = normed_.data()},
             n_patches_, config_.hidden_size, stream_.get());
}

template <typename T>
void VisionTower<T>::apply(const BiasedLinear<T>& layer, std::int64_t n_rows, const T* x, T* y) {
  const Product product{.n_out = layer.n_out,
                        .n_in = layer.n_in,
                        .in = element_of<T>(),
                        .out = element_of<T>(),
                        .has_bias = true};
  gemms_.run(product, n_rows, x, layer.weight, layer.bias, y, stream_);
}

template class VisionTower<float>;
template class VisionTower<bf16>;

}  // namespace jemm::gpu

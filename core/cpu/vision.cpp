#include "cpu/vision.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "cpu/elementwise.h"
#include "cpu/norms.h"
#include "cpu/vision_grid.h"

namespace jemm::cpu {
namespace {

constexpr float kEps = 1e-6f;  // of every layer norm; fixed in the reference

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

// Applies an activation to every value in place.
void activate(Context& context, Tiles& x, void (*function)(float* x, std::int64_t n)) {
  context.pool.parallel_for(x.n_blocks(),
                            [&](std::int64_t b, int) { function(x.block(b), x.cols() * kLanes); });
}

}  // namespace

VisionTower::VisionTower(const Checkpoint& checkpoint)
    : config_(checkpoint.config().vision), weights_(load_vision_weights(checkpoint)) {}

std::vector<Matrix> VisionTower::run(Context& context, std::span<const ImagePatches> images) {
  if (images.empty()) return {};
  const Pass pass = embed(context, images);
  for (const VisionBlockWeights& block : weights_.blocks) {
    layer_norm(context, x_, block.norm1.weight, block.norm1.bias, kEps, normed_);
    attend(context, block, pass);
    add_to(context.pool, x_, update_);

    layer_norm(context, x_, block.norm2.weight, block.norm2.bias, kEps, normed_);
    apply(context, normed_, {{block.fc1, inner_}});
    activate(context, inner_, gelu_tanh);
    apply(context, inner_, {{block.fc2, update_}});
    add_to(context.pool, x_, update_);
  }
  merge(context);

  std::vector<Matrix> results(images.size());
  for (std::size_t i = 0; i < images.size(); ++i) {
    const std::int64_t n = config_.merge_size * config_.merge_size;
    results[i].reshape(pass.runs[i].n_rows / n, merged_.cols());
    std::copy_n(merged_.row(pass.runs[i].row_begin / n), results[i].rows() * merged_.cols(),
                results[i].row(0));
  }
  return results;
}

/// x = W patch + bias + position, and all that depends on the images' sizes.
VisionTower::Pass VisionTower::embed(Context& context, std::span<const ImagePatches> images) {
  const std::int64_t n_values = weights_.patch_embed.n_in();
  Pass pass;
  std::vector<PatchPlace> places;
  for (const ImagePatches& image : images) {
    check_grid(image, config_, n_values);
    const std::vector<PatchPlace> more =
        patch_places(static_cast<std::int32_t>(image.grid_thw[1]),
                     static_cast<std::int32_t>(image.grid_thw[2]), config_.merge_size);
    const auto begin = static_cast<std::int64_t>(places.size());
    const auto n = static_cast<std::int64_t>(more.size());
    pass.runs.push_back({.row_begin = begin, .n_rows = n});
    for (std::int64_t first = 0; first < n; first += kLanes) {
      QueryTile& tile = pass.tiles.emplace_back();
      tile.run = pass.runs.size() - 1;
      for (std::int64_t i = first; i < std::min(first + kLanes, n); ++i) {
        tile.queries.push_back({.index = begin + i, .place = n - 1});
      }
    }
    places.insert(places.end(), more.begin(), more.end());
  }
  patches_.reshape(static_cast<std::int64_t>(places.size()), n_values);
  for (std::size_t i = 0; i < images.size(); ++i) {
    std::copy(images[i].values.begin(), images[i].values.end(),
              patches_.row(pass.runs[i].row_begin));
  }
  to_tiles(context.pool, patches_, inner_);
  apply(context, inner_, {{weights_.patch_embed, x_}});
  const auto side = std::llround(std::sqrt(static_cast<double>(config_.n_position_embeddings)));
  add_positions(context, weights_.position_grid, side, places, x_);
  make_patch_rotary(config_, places, pass.rotary);
  return pass;
}

/// update = proj(attention of every image's patches over all of them).
void VisionTower::attend(Context& context, const VisionBlockWeights& block, const Pass& pass) {
  apply(context, normed_, {{block.q, q_}, {block.k, k_}, {block.v, v_}});
  to_matrix(context.pool, q_, q_rows_);
  to_matrix(context.pool, k_, k_rows_);
  to_matrix(context.pool, v_, v_rows_);
  const std::int64_t width = config_.hidden_size / config_.n_heads;
  for_rows(context, q_rows_.rows(), [&](std::int64_t row) {
    const float* cosine = pass.rotary.cosine.row(row);
    const float* sine = pass.rotary.sine.row(row);
    for (std::int64_t h = 0; h < config_.n_heads; ++h) {
      rotate_head(q_rows_.row(row) + h * width, cosine, sine, width / 2);
      rotate_head(k_rows_.row(row) + h * width, cosine, sine, width / 2);
    }
  });
  attention(context,
            {.q = q_rows_,
             .k = k_rows_,
             .v = v_rows_,
             .n_heads = config_.n_heads,
             .n_kv_heads = config_.n_heads,
             .head_dim = width,
             .runs = pass.runs,
             .tiles = pass.tiles},
            attended_);
  to_tiles(context.pool, attended_, q_);
  apply(context, q_, {{block.proj, update_}});
}

/// merged = fc2(gelu(fc1(the M normed patches of a merged row, side by side))).
void VisionTower::merge(Context& context) {
  layer_norm(context, x_, weights_.merger_norm.weight, weights_.merger_norm.bias, kEps, normed_);
  to_matrix(context.pool, normed_, merged_);
  merged_.join_rows(config_.merge_size * config_.merge_size);
  to_tiles(context.pool, merged_, q_);
  apply(context, q_, {{weights_.merger_fc1, inner_}});
  activate(context, inner_, gelu_erf);
  apply(context, inner_, {{weights_.merger_fc2, update_}});
  to_matrix(context.pool, update_, merged_);
}

}  // namespace jemm::cpu

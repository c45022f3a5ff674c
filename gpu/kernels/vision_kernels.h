// What the vision tower launches. T: bf16, rounded where the reference rounds, or float. Arithmetic
// is float32 in both. Nothing waits for the device; launches that fail throw Error(kDevice).
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/kernels/stream.h"

namespace jemm::gpu {

using bf16 = __nv_bfloat16;

/// A patch of an image of n_rows x n_columns patches.
struct PatchPlace {
  std::int32_t row = 0, column = 0;
  std::int32_t n_rows = 0, n_columns = 0;
};

/// Queries of one image that a block of threads answers: up to kImageQueries rows from
/// `first_query` on. Keys are all patches of the image.
struct ImageTile {
  std::int32_t image_begin = 0, n_patches = 0;  // rows of the packed matrix
  std::int32_t first_query = 0;                 // counted from image_begin
};
inline constexpr std::int32_t kImageQueries = 128;
// What the kernels can hold; the tower refuses models beyond it.
inline constexpr std::int64_t kMaxVisionHeadDim = 128;
inline constexpr std::int64_t kMaxNormWidth = 12 * 1024;
inline constexpr std::size_t kMaxVisionSharedBytes = 119808;  // of a block, whatever the heads

/// x[i] += T(the learned positions around patch i, weighted in both directions). Corners are
/// aligned; weights and their sum are float32. grid: [side, side, width]; x: [n_patches, width].
/// Reference: get_vision_interpolation_indices_and_weights (vision_utils.py), bilinear.
template <typename T>
void add_positions(const T* grid, std::int64_t side, const PatchPlace* places, T* x,
                   std::int64_t n_patches, std::int64_t width, StreamHandle stream);

/// x += update where it is given, then y = (x - mean) / sqrt(variance + eps) * weight + bias, row
/// by row: [n_rows, width], width at most kMaxNormWidth. y is no other operand. Reference:
/// torch.nn.LayerNorm.
template <typename T>
struct LayerNorm {
  T* x = nullptr;
  const T* update = nullptr;
  const T* weight = nullptr;
  const T* bias = nullptr;
  float eps = 0;
  T* y = nullptr;
};
template <typename T>
void layer_norm(const LayerNorm<T>& op, std::int64_t n_rows, std::int64_t width,
                StreamHandle stream);

/// Cosine and sine of coordinate times frequency.
struct Turn {
  float cosine = 1, sine = 0;
};

/// Turns queries and keys in place: pair (x[i], x[i + w / 2]) of a head of w by the patch's row for
/// i < w / 4, by its column for the rest. qkv: [n_patches, 3, n_heads, w]; turns: [coordinate, w /
/// 4]. Reference: apply_rotary_pos_emb_vision.
template <typename T>
void rotate_patches(const PatchPlace* places, const Turn* turns, T* qkv, std::int64_t n_patches,
                    std::int64_t n_heads, std::int64_t head_dim, StreamHandle stream);

/// attended = softmax(q k^T / sqrt(w)) v, head by head, every query against its whole image.
/// Softmax is float32; its values are rounded to T before they meet v. w is even and at most
/// kMaxVisionHeadDim.
template <typename T>
struct ImageAttention {
  const T* qkv = nullptr;            // [n_patches, 3, n_heads, w]
  const ImageTile* tiles = nullptr;  // [n_tiles]
  std::int64_t n_tiles = 0, n_heads = 0, head_dim = 0;
  T* attended = nullptr;  // [n_patches, n_heads, w]
};
void attend_images(const ImageAttention<float>& op, StreamHandle stream);
void attend_images(const ImageAttention<bf16>& op, StreamHandle stream);

/// x = gelu(x) in place, n values: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), or
/// 0.5 x (1 + erf(x / sqrt(2))).
template <typename T>
void gelu_tanh(T* x, std::int64_t n, StreamHandle stream);
template <typename T>
void gelu_erf(T* x, std::int64_t n, StreamHandle stream);

}  // namespace jemm::gpu

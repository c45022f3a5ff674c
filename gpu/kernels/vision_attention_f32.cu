// Attention of images in float32: the softmax is built up block of keys by block of keys.
#include <cmath>

#include "gpu/kernels/vision_device.cuh"
#include "gpu/kernels/vision_kernels.h"

namespace jemm::gpu {
namespace {

constexpr int kSide = 64;  // queries and keys of a step
constexpr int kStride = kSide + 4;
constexpr int kThreads = 256;
constexpr int kGroup = 16;  // neighbouring threads share 4 queries; each has 4 keys of a step

// The largest or the sum over the threads that share queries, in each of them.
template <typename Join>
__device__ float join_group(float x, Join join) {
  for (int lane = kGroup / 2; lane > 0; lane /= 2) {
    x = join(x, __shfl_xor_sync(0xffffffffu, x, lane));
  }
  return x;
}

// to[d][i] = row i's value d, for 64 rows of which n_valid exist; the others are zeros.
__device__ void load_turned(const float* from, std::int64_t stride, int n_valid, int head_dim,
                            float* to) {
  for (int at = static_cast<int>(threadIdx.x); at < kSide * head_dim; at += kThreads) {
    const int row = at / head_dim, d = at % head_dim;
    to[d * kStride + row] = row < n_valid ? from[row * stride + d] : 0.0f;
  }
}

__device__ void load_straight(const float* from, std::int64_t stride, int n_valid, int head_dim,
                              float* to) {
  for (int at = static_cast<int>(threadIdx.x); at < kSide * head_dim; at += kThreads) {
    const int row = at / head_dim, d = at % head_dim;
    to[at] = row < n_valid ? from[row * stride + d] : 0.0f;
  }
}

// scores[i][j] = sum of x[d][i] y[d][j] over d; x and y point at a thread's 4 rows and 4 columns.
__device__ void multiply_turned(const float* x, const float* y, int head_dim,
                                float (&scores)[4][4]) {
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) scores[i][j] = 0;
  }
  for (int d = 0; d < head_dim; ++d) {
    const auto a = load_pack<float, 4>(x + d * kStride), b = load_pack<float, 4>(y + d * kStride);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) scores[i][j] = fmaf(a.at[i], b.at[j], scores[i][j]);
    }
  }
}

// A block: 64 queries of one head. A thread keeps 4 queries, of each every 16th output value.
template <int kColumns>
__global__ void __launch_bounds__(kThreads)
    attend_f32_kernel(const float* qkv, const ImageTile* tiles, int n_heads, int head_dim,
                      float scale, float* attended) {
  constexpr int kParts = kImageQueries / kSide;
  const ImageTile tile = tiles[blockIdx.x / kParts];
  const int first_query = tile.first_query + static_cast<int>(blockIdx.x % kParts) * kSide;
  if (first_query >= tile.n_patches) return;
  const int head = static_cast<int>(blockIdx.y), width = n_heads * head_dim;
  const int across = static_cast<int>(threadIdx.x) % kGroup,
            down = static_cast<int>(threadIdx.x) / kGroup * 4;
  extern __shared__ __align__(16) float shared[];
  float* q = shared;                        // [head_dim][64 queries]
  float* k = q + head_dim * kStride;        // [head_dim][64 keys]
  float* weights = k + head_dim * kStride;  // [64 keys][64 queries]
  float* v = weights + kSide * kStride;     // [64 keys][head_dim]

  const std::int64_t stride = std::int64_t{3} * width;
  const float* image = qkv + tile.image_begin * stride + head * head_dim;
  load_turned(image + first_query * stride, stride, tile.n_patches - first_query, head_dim, q);

  float largest[4], sum[4] = {}, output[4][kColumns] = {};
  for (int i = 0; i < 4; ++i) largest[i] = -INFINITY;
  for (int first_key = 0; first_key < tile.n_patches; first_key += kSide) {
    const int n_keys = tile.n_patches - first_key;
    __syncthreads();  // the last step's keys and values have been used
    load_turned(image + first_key * stride + width, stride, n_keys, head_dim, k);
    load_straight(image + first_key * stride + 2 * width, stride, n_keys, head_dim, v);
    __syncthreads();

    float scores[4][4];
    multiply_turned(q + down, k + across * 4, head_dim, scores);
    for (int i = 0; i < 4; ++i) {
      float peak = -INFINITY;
      for (int j = 0; j < 4; ++j) {
        scores[i][j] = across * 4 + j < n_keys ? scores[i][j] * scale : -INFINITY;
        peak = fmaxf(peak, scores[i][j]);
      }
      peak = fmaxf(largest[i], join_group(peak, [](float a, float b) { return fmaxf(a, b); }));
      const float fade = expf(largest[i] - peak);
      largest[i] = peak;
      float part = 0;
      for (int j = 0; j < 4; ++j) {
        scores[i][j] = expf(scores[i][j] - peak);
        part += scores[i][j];
      }
      sum[i] = sum[i] * fade + join_group(part, [](float a, float b) { return a + b; });
      for (int c = 0; c < kColumns; ++c) output[i][c] *= fade;
    }
    for (int j = 0; j < 4; ++j) {
      store_pack<float, 4>(weights + (across * 4 + j) * kStride + down,
                           {{scores[0][j], scores[1][j], scores[2][j], scores[3][j]}});
    }
    __syncthreads();

    for (int key = 0; key < kSide; ++key) {
      const auto weight = load_pack<float, 4>(weights + key * kStride + down);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        const int d = across + c * kGroup;
        const float value = d < head_dim ? v[key * head_dim + d] : 0.0f;
        for (int i = 0; i < 4; ++i) output[i][c] = fmaf(weight.at[i], value, output[i][c]);
      }
    }
  }

  for (int i = 0; i < 4; ++i) {
    const int query = first_query + down + i;
    if (query >= tile.n_patches) break;
    float* to = attended + (std::int64_t{tile.image_begin} + query) * width + head * head_dim;
    for (int c = 0; c < kColumns; ++c) {
      const int d = across + c * kGroup;
      if (d < head_dim) to[d] = output[i][c] / sum[i];
    }
  }
}

constexpr std::size_t shared_bytes(std::int64_t head_dim) {
  return static_cast<std::size_t>(head_dim * (2 * kStride + kSide) + kSide * kStride) *
         sizeof(float);
}
static_assert(shared_bytes(kMaxVisionHeadDim) == kMaxVisionSharedBytes);

}  // namespace

void attend_images(const ImageAttention<float>& op, StreamHandle stream) {
  if (op.n_tiles == 0) return;
  constexpr int kParts = kImageQueries / kSide;
  const auto head_dim = static_cast<int>(op.head_dim);
  const auto launch = head_dim <= 32   ? attend_f32_kernel<2>
                      : head_dim <= 80 ? attend_f32_kernel<5>
                                       : attend_f32_kernel<kMaxVisionHeadDim / kGroup>;
  const std::size_t bytes = shared_bytes(op.head_dim);
  allow_shared(launch, bytes, "attend_images");
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
  const dim3 grid(static_cast<unsigned>(op.n_tiles * kParts), static_cast<unsigned>(op.n_heads));
  launch<<<grid, kThreads, bytes, stream>>>(op.qkv, op.tiles, static_cast<int>(op.n_heads),
                                            head_dim, scale, op.attended);
  check_launch("attend_images");
}

}  // namespace jemm::gpu

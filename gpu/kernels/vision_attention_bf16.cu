// Attention of images in BF16 on tensor cores: scores, softmax and its sum in float32 registers.
#include <cmath>

#include "gpu/kernels/mma.cuh"
#include "gpu/kernels/sm90_vision_attention.h"
#include "gpu/kernels/vision_device.cuh"
#include "gpu/kernels/vision_kernels.h"

namespace jemm::gpu {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * 32;
constexpr int kQueriesAWarp = kImageQueries / kWarps;  // two tiles of 16
constexpr int kQueryTiles = kQueriesAWarp / 16;
constexpr int kKeys = 64;      // of a stage in shared memory; two stages, one being filled
constexpr int kStepKeys = 32;  // whose scores are in registers at a time

// Shapes of a kernel for heads of up to kWidth values, kWidth a multiple of 8.
template <int kWidth>
struct HeadShape {
  static constexpr int kDepth = (kWidth + 15) / 16 * 16;  // values of a row, with zeros behind
  static constexpr int kStride = kDepth + 8;      // an odd number of 16 bytes: no bank conflicts
  static constexpr int kStage = kKeys * kStride;  // of keys, or of values
  static constexpr int kSlices = kDepth / 16;
  static constexpr int kOutputTiles = kWidth / 8;
  static constexpr std::size_t kSharedBytes = 4 * kStage * sizeof(bf16);
};
static_assert(kImageQueries == 2 * kKeys, "queries pass through the first stage");

// Fills kRows rows of `to` with one head of rows `from`, zeros where there is none. kIsWhole: rows
// and heads are multiples of 16 bytes, copied in the background; else value by value.
template <int kWidth, int kRows, bool kIsWhole>
__device__ void load_rows(const bf16* from, std::int64_t stride, int n_valid, int head_dim,
                          bf16* to) {
  using Shape = HeadShape<kWidth>;
  constexpr int kPacks = Shape::kDepth / 8;
  for (int at = static_cast<int>(threadIdx.x); at < kRows * kPacks; at += kThreads) {
    const int row = at / kPacks, c = at % kPacks * 8;
    bf16* const place = to + row * Shape::kStride + c;
    const bf16* const source = from + row * stride + c;
    if constexpr (kIsWhole) {
      const bool is_there = row < n_valid && c < head_dim;
      copy_16(place, is_there ? source : from, is_there ? 16 : 0);
    } else {
      Pack<bf16, 8> pack;
      for (int i = 0; i < 8; ++i) {
        pack.at[i] = row < n_valid && c + i < head_dim ? source[i] : __float2bfloat16_rn(0.0f);
      }
      store_pack(place, pack);
    }
  }
}

// What a warp keeps of its queries. Each row lies in four neighbouring lanes; a lane has rows l / 4
// and l / 4 + 8 of a tile.
template <int kWidth>
struct WarpState {
  std::uint32_t queries[kQueryTiles][HeadShape<kWidth>::kSlices][4];
  float output[kQueryTiles][HeadShape<kWidth>::kOutputTiles][4] = {};
  float largest[kQueryTiles][2];   // score
  float sum[kQueryTiles][2] = {};  // of this lane's columns only
};

template <int kWidth>
__device__ void take_queries(WarpState<kWidth>& state, const bf16* queries) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
  for (int t = 0; t < kQueryTiles; ++t) {
    const bf16* const row =
        queries + (warp * kQueriesAWarp + t * 16 + lane % 16) * HeadShape<kWidth>::kStride +
        lane / 16 * 8;
#pragma unroll
    for (int slice = 0; slice < HeadShape<kWidth>::kSlices; ++slice) {
      load_matrices(state.queries[t][slice], row + slice * 16);
    }
    state.largest[t][0] = state.largest[t][1] = -INFINITY;
  }
}

using Scores = float[kQueryTiles][kStepKeys / 8][4];

template <int kWidth>
__device__ void multiply_keys(const WarpState<kWidth>& state, const bf16* keys, Scores& scores) {
  using Shape = HeadShape<kWidth>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bf16* const row = keys + (lane / 16 * 8 + lane % 8) * Shape::kStride + lane / 8 % 2 * 8;
#pragma unroll
  for (int slice = 0; slice < Shape::kSlices; ++slice) {
#pragma unroll
    for (int pair = 0; pair < kStepKeys / 16; ++pair) {
      std::uint32_t b[4];
      load_matrices(b, row + pair * 16 * Shape::kStride + slice * 16);
#pragma unroll
      for (int t = 0; t < kQueryTiles; ++t) {
        mma_bf16(scores[t][2 * pair], state.queries[t][slice], b[0], b[1]);
        mma_bf16(scores[t][2 * pair + 1], state.queries[t][slice], b[2], b[3]);
      }
    }
  }
}

// Keys from n_valid on are behind the image's last patch.
__device__ void hide_keys(Scores& scores, int n_valid) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int t = 0; t < kQueryTiles; ++t) {
#pragma unroll
    for (int n = 0; n < kStepKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (n * 8 + lane % 4 * 2 + i % 2 >= n_valid) scores[t][n][i] = -INFINITY;
      }
    }
  }
}

// scores become exp(scale (score - largest)); what was summed so far fades to the new largest.
// `factor` is scale / ln 2.
template <int kWidth>
__device__ void soften(WarpState<kWidth>& state, Scores& scores, float factor) {
#pragma unroll
  for (int t = 0; t < kQueryTiles; ++t) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float peak = state.largest[t][half];
#pragma unroll
      for (int n = 0; n < kStepKeys / 8; ++n) {
        peak = fmaxf(peak, fmaxf(scores[t][n][2 * half], scores[t][n][2 * half + 1]));
      }
      peak = fmaxf(peak, __shfl_xor_sync(0xffffffffu, peak, 1));
      peak = fmaxf(peak, __shfl_xor_sync(0xffffffffu, peak, 2));
      const float fade = power_of_two((state.largest[t][half] - peak) * factor);
      state.largest[t][half] = peak;
      float part = 0;
#pragma unroll
      for (int n = 0; n < kStepKeys / 8; ++n) {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          scores[t][n][i] = power_of_two(fmaf(scores[t][n][i], factor, -peak * factor));
          part += scores[t][n][i];
        }
      }
      state.sum[t][half] = state.sum[t][half] * fade + part;
#pragma unroll
      for (int n = 0; n < HeadShape<kWidth>::kOutputTiles; ++n) {
        state.output[t][n][2 * half] *= fade;
        state.output[t][n][2 * half + 1] *= fade;
      }
    }
  }
}

template <int kWidth>
__device__ void multiply_values(WarpState<kWidth>& state, const bf16* values,
                                const Scores& weights) {
  using Shape = HeadShape<kWidth>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bf16* const row = values + lane % 16 * Shape::kStride + lane / 16 * 8;
#pragma unroll
  for (int slice = 0; slice < kStepKeys / 16; ++slice) {
    std::uint32_t a[kQueryTiles][4];
#pragma unroll
    for (int t = 0; t < kQueryTiles; ++t) {
      for (int i = 0; i < 4; ++i) {
        const float* const pair = weights[t][2 * slice + i / 2] + i % 2 * 2;
        a[t][i] = pack_pair(pair[0], pair[1]);
      }
    }
#pragma unroll
    for (int n = 0; n < Shape::kOutputTiles; n += 2) {
      std::uint32_t b[4];
      load_matrices_transposed(b, row + slice * 16 * Shape::kStride + n * 8);
#pragma unroll
      for (int t = 0; t < kQueryTiles; ++t) {
        mma_bf16(state.output[t][n], a[t], b[0], b[1]);
        if (n + 1 < Shape::kOutputTiles) mma_bf16(state.output[t][n + 1], a[t], b[2], b[3]);
      }
    }
  }
}

template <int kWidth>
__device__ void write_output(const WarpState<kWidth>& state, const ImageTile& tile, int width,
                             int head, int head_dim, bf16* attended) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
  for (int t = 0; t < kQueryTiles; ++t) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = state.sum[t][half];
      sum += __shfl_xor_sync(0xffffffffu, sum, 1);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      const int query = tile.first_query + warp * kQueriesAWarp + t * 16 + half * 8 + lane / 4;
      if (query >= tile.n_patches) continue;
      bf16* const to =
          attended + (std::int64_t{tile.image_begin} + query) * width + head * head_dim;
#pragma unroll
      for (int n = 0; n < HeadShape<kWidth>::kOutputTiles; ++n) {
        const int d = n * 8 + lane % 4 * 2;
        if (d < head_dim) {
          *reinterpret_cast<std::uint32_t*>(to + d) =
              pack_pair(state.output[t][n][2 * half] / sum, state.output[t][n][2 * half + 1] / sum);
        }
      }
    }
  }
}

// A block: one tile of queries and one head; a warp: 32 of the queries.
template <int kWidth, bool kIsWhole>
__global__ void __launch_bounds__(kThreads)
    attend_bf16_kernel(const bf16* qkv, const ImageTile* tiles, int n_heads, int head_dim,
                       float factor, bf16* attended) {
  using Shape = HeadShape<kWidth>;
  extern __shared__ __align__(16) bf16 stages[];  // [2][keys, values]
  const ImageTile tile = tiles[blockIdx.x];
  const int head = static_cast<int>(blockIdx.y), width = n_heads * head_dim;
  const std::int64_t stride = std::int64_t{3} * width;
  const bf16* const image = qkv + tile.image_begin * stride + head * head_dim;
  const auto stage_of = [&](int step) { return stages + (step + 1) % 2 * 2 * Shape::kStage; };
  const auto load_stage = [&](int step) {
    const bf16* const keys = image + std::int64_t{step} * kKeys * stride + width;
    const int n_valid = tile.n_patches - step * kKeys;
    load_rows<kWidth, kKeys, kIsWhole>(keys, stride, n_valid, head_dim, stage_of(step));
    load_rows<kWidth, kKeys, kIsWhole>(keys + width, stride, n_valid, head_dim,
                                       stage_of(step) + Shape::kStage);
    commit_copies();
  };

  load_rows<kWidth, kImageQueries, kIsWhole>(image + tile.first_query * stride, stride,
                                             tile.n_patches - tile.first_query, head_dim, stages);
  commit_copies();
  load_stage(0);
  wait_copies<1>();
  __syncthreads();

  WarpState<kWidth> state;
  take_queries(state, stages);
  __syncthreads();  // the queries' place becomes the second stage

  const int n_steps = (tile.n_patches + kKeys - 1) / kKeys;
  for (int step = 0; step < n_steps; ++step) {
    if (step + 1 < n_steps) {
      load_stage(step + 1);
      wait_copies<1>();
    } else {
      wait_copies<0>();
    }
    __syncthreads();
    const bf16* const keys = stage_of(step);
#pragma unroll
    for (int part = 0; part < kKeys; part += kStepKeys) {
      const int n_valid = tile.n_patches - step * kKeys - part;
      if (n_valid <= 0) break;
      Scores scores = {};
      multiply_keys(state, keys + part * Shape::kStride, scores);
      if (n_valid < kStepKeys) hide_keys(scores, n_valid);
      soften(state, scores, factor);
      multiply_values(state, keys + Shape::kStage + part * Shape::kStride, scores);
    }
    __syncthreads();  // this stage is filled next
  }

  write_output(state, tile, width, head, head_dim, attended);
}

template <int kWidth, bool kIsWhole>
void launch(const ImageAttention<bf16>& op, float factor, StreamHandle stream) {
  const auto kernel = attend_bf16_kernel<kWidth, kIsWhole>;
  constexpr std::size_t kBytes = HeadShape<kWidth>::kSharedBytes;
  static_assert(kBytes <= kMaxVisionSharedBytes);
  allow_shared(kernel, kBytes, "attend_images");
  const dim3 grid(static_cast<unsigned>(op.n_tiles), static_cast<unsigned>(op.n_heads));
  kernel<<<grid, kThreads, kBytes, stream>>>(op.qkv, op.tiles, static_cast<int>(op.n_heads),
                                             static_cast<int>(op.head_dim), factor, op.attended);
  check_launch("attend_images");
}

template <int kWidth>
void launch(const ImageAttention<bf16>& op, float factor, StreamHandle stream) {
  if (op.head_dim % 8 == 0) {
    launch<kWidth, true>(op, factor, stream);
  } else {
    launch<kWidth, false>(op, factor, stream);
  }
}

}  // namespace

void attend_images(const ImageAttention<bf16>& op, StreamHandle stream) {
  if (op.n_tiles == 0) return;
  constexpr double kLn2 = 0.69314718055994531;
  const auto factor =
      static_cast<float>(1.0 / (std::sqrt(static_cast<double>(op.head_dim)) * kLn2));
  if (sm90_attend_takes(op)) {
    sm90_attend_images(op, factor, stream);
  } else if (op.head_dim <= 32) {
    launch<32>(op, factor, stream);
  } else if (op.head_dim <= 72) {
    launch<72>(op, factor, stream);
  } else {
    launch<kMaxVisionHeadDim>(op, factor, stream);
  }
}

}  // namespace jemm::gpu

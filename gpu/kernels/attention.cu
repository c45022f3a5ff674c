// Causal attention over chains of runs, with the softmax carried along blocks of 64 keys.
//
// A block of 4 warps takes a tile of up to 64 queries of one head; a warp 16 of them, with their
// results [16, Dh] in registers. Keys and values of a block are gathered into shared memory through
// the chain, rows behind the last query's place left out; the next keys while these are weighed,
// the next values while the next keys are scored. Heads are padded with zeros to kHead. Work: 4 Dh
// operations a query and visible key; in BF16 on the matrix unit (mma.m16n8k16). A query's result
// depends on its chain alone: key blocks begin at the root's start.
#include <type_traits>

#include "gpu/cuda.h"
#include "gpu/kernels/attention.cuh"
#include "gpu/kernels/tile_product.cuh"

namespace jemm::gpu {
namespace {

constexpr int kThreads = 128;
constexpr int kQueries = kAttentionTileRows;
constexpr int kKeys = 64;

template <typename T>
struct MathOf {
  using Type = Fp32Math;
};
template <>
struct MathOf<__nv_bfloat16> {
  using Type = Bf16Math;
};

template <typename T, int kHead>
struct Shared {
  static constexpr int kStride = kHead + 8;
  static constexpr int kScoreStride = kKeys + 8;
  alignas(16) T q[kQueries * kStride];
  alignas(16) T k[kKeys * kStride];
  alignas(16) T v[kKeys * kStride];
  alignas(16) T scores[kQueries * kScoreStride];
  int key_rows[2][kKeys];  // of this block of keys and the next
};

// exp to the precision of a T.
template <typename T>
__device__ float exp_for(float x) {
  return sizeof(T) == 2 ? __expf(x) : expf(x);
}

template <typename T, int kHead>
__global__ void __launch_bounds__(kThreads)
    attention_kernel(AttentionArgs args, AttentionTensors<T> t) {
  using Math = typename MathOf<T>::Type;
  using S = Shared<T, kHead>;
  extern __shared__ uint4 memory[];
  S& shared = *reinterpret_cast<S*>(memory);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const Lane lane;
  const AttentionTile tile = args.tiles[gridDim.x - 1 - blockIdx.x];  // the longest first
  const int head = static_cast<int>(blockIdx.y), width = args.head_dim;
  const int kv_head = head / (args.n_heads / args.n_kv_heads);
  const float scale = 1.0f / sqrtf(static_cast<float>(width));

  const int n_keys = tile.first_place + tile.n_rows;
  ChainRows chain_row(args.runs, tile.run);
  const auto find_rows = [&](int key0) {
    if (thread >= kKeys) return;
    const int place = key0 + thread;
    shared.key_rows[key0 / kKeys % 2][thread] = place < n_keys ? chain_row(place) : -1;
  };
  // Closes a group of copies even where there is nothing to copy, so that they can be counted.
  const auto gather = [&](const T* from, std::int64_t stride, int key0, T* to) {
    if (key0 < n_keys) {
#pragma unroll 4
      for (int i = warp; i < kKeys; i += kThreads / 32) {
        const std::int64_t row = shared.key_rows[key0 / kKeys % 2][i];
        copy_row(from + (row < 0 ? 0 : row) * stride + kv_head * width, row < 0 ? 0 : width,
                 to + i * S::kStride, kHead, thread % 32, 32);
      }
    }
    commit_copies();
  };
  const std::int64_t k_stride = static_cast<std::int64_t>(args.n_kv_heads) * width;

  for (int i = warp; i < kQueries; i += kThreads / 32) {
    const std::int64_t row = tile.row_begin + min(i, tile.n_rows - 1);
    copy_row(t.q + (row * args.n_heads + head) * width, i < tile.n_rows ? width : 0,
             shared.q + i * S::kStride, kHead, thread % 32, 32);
  }
  find_rows(0);
  __syncthreads();
  gather(t.k, k_stride, 0, shared.k);
  gather(t.v, args.v_stride, 0, shared.v);

  float out[kHead / 8][4] = {};
  float maximum[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
  for (int key0 = 0; key0 < n_keys; key0 += kKeys) {
    find_rows(key0 + kKeys);
    wait_copies<1>();
    __syncthreads();  // the keys are there

    float s[kKeys / 8][4] = {};
    TileProduct<Math, Fast::kSum, Fast::kSum, kKeys / 8, kHead>::run(
        s, shared.q + warp * 16 * S::kStride, S::kStride, shared.k, S::kStride);
    __syncthreads();  // the keys have been used
    gather(t.k, k_stride, key0 + kKeys, shared.k);
    T* scores = shared.scores + warp * 16 * S::kScoreStride;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = lane.g + 8 * half;
      const int last_key = tile.first_place + min(warp * 16 + row, tile.n_rows - 1) - key0;
      float block_maximum = -INFINITY;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          float& x = s[n][2 * half + j];
          x = 8 * n + 2 * lane.t + j <= last_key ? x * scale : -INFINITY;
          block_maximum = fmaxf(block_maximum, x);
        }
      }
      block_maximum = fmaxf(block_maximum, __shfl_xor_sync(0xffffffffU, block_maximum, 1));
      block_maximum = fmaxf(block_maximum, __shfl_xor_sync(0xffffffffU, block_maximum, 2));
      const float before = maximum[half];
      // A block without a visible key leaves everything as it is.
      const float now = fmaxf(before, block_maximum);
      const float safe = now == -INFINITY ? 0.0f : now;
      const float shrink = before == -INFINITY ? 0.0f : expf(before - safe);
      float block_sum = 0;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        const float2 p{exp_for<T>(s[n][2 * half] - safe), exp_for<T>(s[n][2 * half + 1] - safe)};
        block_sum += p.x + p.y;
        store_pair(scores + row * S::kScoreStride + 8 * n + 2 * lane.t, p);
      }
      block_sum += __shfl_xor_sync(0xffffffffU, block_sum, 1);
      block_sum += __shfl_xor_sync(0xffffffffU, block_sum, 2);
      maximum[half] = now;
      sum[half] = sum[half] * shrink + block_sum;
#pragma unroll
      for (int n = 0; n < kHead / 8; ++n) {
        out[n][2 * half] *= shrink;
        out[n][2 * half + 1] *= shrink;
      }
    }
    wait_copies<1>();
    __syncthreads();  // the values are there, and the warp's scores
    TileProduct<Math, Fast::kSum, Fast::kOuter, kHead / 8, kKeys>::run(out, scores, S::kScoreStride,
                                                                       shared.v, S::kStride);
    __syncthreads();  // the values have been used
    gather(t.v, args.v_stride, key0 + kKeys, shared.v);
  }

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = warp * 16 + lane.g + 8 * half;
    if (i >= tile.n_rows) continue;
    const std::int64_t row = tile.row_begin + i;
    const T* gate = t.gates + row * args.gate_stride + 2 * head * width;
    T* to = t.out + (row * args.n_heads + head) * width;
    const float inverse = 1.0f / sum[half];
#pragma unroll
    for (int n = 0; n < kHead / 8; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int column = 8 * n + 2 * lane.t + j;
        if (column >= width) continue;
        const float x = out[n][2 * half + j] * inverse;
        to[column] = from_float<T>(x * sigmoid(to_float(gate[column])));
      }
    }
  }
}

template <typename T, int kHead>
void launch(const AttentionArgs& args, const AttentionTensors<T>& tensors, StreamHandle stream) {
  constexpr std::size_t kShared = sizeof(Shared<T, kHead>);
  static_assert(kShared == attention_shared_bytes(sizeof(T), kHead));
  allow_shared(attention_kernel<T, kHead>, kShared, "attention");
  const dim3 grid(static_cast<unsigned>(args.n_tiles), static_cast<unsigned>(args.n_heads));
  attention_kernel<T, kHead><<<grid, kThreads, kShared, stream>>>(args, tensors);
  check_launch("attention");
}

}  // namespace

template <typename T>
void attention(const AttentionArgs& args, const T* q, const T* k, const T* v, const T* gates,
               T* out, StreamHandle stream) {
  if (args.n_tiles == 0) return;
  check_limit("an attention head's width", args.head_dim, kMaxAttentionHead);
  const AttentionTensors<T> tensors{q, k, v, gates, out};
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    if (sm90_attention_takes(args, tensors)) {
      sm90_attention(args, tensors, stream);
      return;
    }
  }
  switch (padded_attention_head(args.head_dim)) {
    case 32:
      return launch<T, 32>(args, tensors, stream);
    case 128:
      return launch<T, 128>(args, tensors, stream);
    default:
      return launch<T, kMaxAttentionHead>(args, tensors, stream);
  }
}
template void attention(const AttentionArgs&, const float*, const float*, const float*,
                        const float*, float*, StreamHandle);
template void attention(const AttentionArgs&, const __nv_bfloat16*, const __nv_bfloat16*,
                        const __nv_bfloat16*, const __nv_bfloat16*, __nv_bfloat16*, StreamHandle);

}  // namespace jemm::gpu

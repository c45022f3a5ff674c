// Causal attention over chains of runs in BF16 for heads of 256, on the matrix unit of sm_90a.
//
// A block takes 128 packed queries of one key head: the heads that share it, row after row, so that
// a tile of 64 rows and 6 heads a key head is three whole blocks, and a leaf of 16 rows one. Two
// warpgroups compute, 64 packed queries each with the results [64, 256] in registers; a third
// copies keys and values into two buffers of 80 rows each. In a warpgroup the products of block
// i - 1 with the values run while the scores of block i become weights. Work: 4 Dh operations a
// query and visible key. A query's result depends on its chain alone: key blocks begin at the
// root's start, and blocks without a visible key change nothing.
#include "gpu/cuda.h"
#include "gpu/kernels/attention.cuh"
#include "gpu/kernels/device.cuh"
#include "gpu/kernels/wgmma.cuh"

namespace jemm::gpu {
namespace {

using bf16 = __nv_bfloat16;

constexpr int kHead = 256;
constexpr int kSlabs = kHead / kSlabColumns;
constexpr int kQueries = 128;  // packed, of a block
constexpr int kKeys = 80;      // of a stage
constexpr int kStages = 2;
constexpr int kGroup = 128;  // threads of a warpgroup
constexpr int kThreads = 3 * kGroup;

using Rows = bf16[kSlabs][kKeys][kSlabColumns];

struct Shared {
  bf16 q[kSlabs][kQueries][kSlabColumns];
  Rows k[kStages];
  Rows v[kStages];
};
constexpr int kAlignment = 1024;
constexpr int kSharedBytes = static_cast<int>(sizeof(Shared)) + kAlignment;

struct Stage {
  Barrier full, free;
};
struct Barriers {
  Barrier q;
  Stage k[kStages], v[kStages];
};

#ifdef JEMM_HAS_WGMMA

constexpr int kCopyWarps = 2;  // for the keys, and as many for the values
constexpr int kCopyRegisters = 56, kComputeRegisters = 224;  // (56 + 2 * 224) * 128 <= 65,536

// What a block computes. In shared memory, for want of registers.
struct Work {
  int run, row_begin, first_place;
  int n_heads;  // that share the key head
  int kv_head;
  int first;     // packed query within the tile
  int n_packed;  // queries of the tile
  int n_keys;    // visible to the last query

  __device__ void find(const AttentionArgs& args) {
    n_heads = args.n_heads / args.n_kv_heads;
    const int n_parts = (kAttentionTileRows * n_heads + kQueries - 1) / kQueries;
    kv_head = static_cast<int>(blockIdx.x) % args.n_kv_heads;
    const int part = static_cast<int>(gridDim.x - 1 - blockIdx.x) / args.n_kv_heads;
    const AttentionTile tile = args.tiles[part / n_parts];  // the longest first
    run = tile.run;
    row_begin = tile.row_begin;
    first_place = args.runs[run].n_before + row_begin - args.runs[run].row_begin;
    first = part % n_parts * kQueries;
    n_packed = tile.n_rows * n_heads;
    n_keys = place_of(kQueries - 1) + 1;
  }
  __device__ bool is_empty() const { return first >= n_packed; }
  __device__ int n_blocks() const { return (n_keys + kKeys - 1) / kKeys; }
  // Queries behind the last one count as that one.
  __device__ int place_of(int query) const {
    return first_place + min(first + query, n_packed - 1) / n_heads;
  }
};

// One row of a head into a row of slabs, by a warp: 16 bytes a lane.
__device__ void copy_head(const bf16* from, bool is_there, int row, void* to, int slab_bytes) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  copy_16(static_cast<char*>(to) + lane / 8 * slab_bytes + slab_piece(row, lane % 8),
          from + 8 * lane, is_there ? 16 : 0);
}

__device__ void copy_queries(const AttentionArgs& args, const bf16* q, const Work& work,
                             Shared& shared) {
  for (int i = static_cast<int>(threadIdx.x) / 32; i < kQueries; i += kGroup / 32) {
    const int packed = min(work.first + i, work.n_packed - 1);
    const std::int64_t row = work.row_begin + packed / work.n_heads;
    const int head = work.kv_head * work.n_heads + packed % work.n_heads;
    copy_head(q + (row * args.n_heads + head) * kHead, true, i, shared.q, sizeof shared.q[0]);
  }
}

// The rows of kKeys places from `place` on, zeros from n_keys on, by kCopyWarps warps.
__device__ void copy_stage(ChainRows& chain_row, int place, int n_keys, const bf16* from,
                           std::int64_t stride, int warp, Rows& to) {
  const std::int64_t first = chain_row(place);
  if (place + kKeys <= n_keys && chain_row.holds(place + kKeys - 1)) {  // one after another
    from += (first + warp) * stride;
#pragma unroll 1
    for (int i = warp; i < kKeys; i += 8) {  // rows 8 apart are permuted alike
#pragma unroll
      for (int j = 0; j < 8; j += kCopyWarps) {
        copy_head(from + j * stride, true, i + j, to, sizeof to[0]);
      }
      from += 8 * stride;
    }
    return;
  }
#pragma unroll 1
  for (int i = warp; i < kKeys; i += kCopyWarps) {
    const bool is_there = place + i < n_keys;
    const std::int64_t row = is_there ? chain_row(place + i) : first;
    copy_head(from + row * stride, is_there, i, to, sizeof to[0]);
  }
}

// Keys by the first warps, values by the others, stage after stage.
__device__ void copy_rows(const AttentionArgs& args, const AttentionTensors<bf16>& t,
                          const Work& work, Shared& shared, Barriers& barriers) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const bool takes_keys = warp < kCopyWarps;
  const bf16* from = (takes_keys ? t.k : t.v) + work.kv_head * kHead;
  const std::int64_t stride =
      takes_keys ? static_cast<std::int64_t>(args.n_kv_heads) * kHead : args.v_stride;
  Rows* to = takes_keys ? shared.k : shared.v;
  Stage* stages = takes_keys ? barriers.k : barriers.v;
  ChainRows chain_row(args.runs, work.run);
  for (int block = 0; block < work.n_blocks(); ++block) {
    Stage& stage = stages[block % kStages];
    stage.free.wait(block / kStages % 2 ^ 1);
    copy_stage(chain_row, block * kKeys, work.n_keys, from, stride, warp % kCopyWarps,
               to[block % kStages]);
    commit_copies();
    wait_copies<0>();
    publish_to_products();
    if (block == 0) barriers.q.arrive();
    stage.full.arrive();
  }
}

// The softmax of a thread's two rows, carried along. Scores are scaled by `factor` and exponentials
// are to base 2: factor = 1 / (sqrt(Dh) ln 2).
struct Softmax {
  float maximum[2] = {-INFINITY, -INFINITY};  // of the scores, not scaled
  float sum[2] = {};                          // of this thread's columns
  float shrink[2];                            // what the last block makes of results before it

  __device__ void run(float (&s)[kKeys / 8][4], float factor) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float now = maximum[half];
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        now = fmaxf(now, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
      }
      now = fmaxf(now, __shfl_xor_sync(0xffffffffU, now, 1));
      now = fmaxf(now, __shfl_xor_sync(0xffffffffU, now, 2));
      shrink[half] = power_of_two((maximum[half] - now) * factor);
      maximum[half] = now;
      float block_sum = 0;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int j = 2 * half; j < 2 * half + 2; ++j) {
          s[n][j] = power_of_two(fmaf(s[n][j], factor, -now * factor));
          block_sum += s[n][j];
        }
      }
      sum[half] = sum[half] * shrink[half] + block_sum;
    }
  }
};

using Weights = std::uint32_t[kKeys / 16][4];

__device__ void pack(const float (&s)[kKeys / 8][4], Weights& weights) {
#pragma unroll
  for (int i = 0; i < kKeys / 16; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      weights[i][j] = pack_pair(s[2 * i + j / 2][j % 2 * 2], s[2 * i + j / 2][j % 2 * 2 + 1]);
    }
  }
}

// A warpgroup's 64 packed queries, from `first` of the block on.
class Computing {
 public:
  __device__ Computing(const Work& work, Shared& shared, Barriers& barriers, int first)
      : work_(work), shared_(shared), barriers_(barriers), first_(first) {
    queries_ = slab_operand(&shared.q[0][first], sizeof shared.q[0]);
    const int row = first + warp() * 16 + lane() / 4;
    last_key_[0] = work.place_of(row);
    last_key_[1] = work.place_of(row + 8);
  }

  __device__ void run() {
    constexpr float kFactor = 1.44269504f / 16.0f;  // 1 / (sqrt(256) ln 2)
    const int n_blocks = work_.n_blocks();
    float s[kKeys / 8][4];
    Weights weights;
    barriers_.q.wait(0);
    await_keys(0);
    score(0, s);
    wait_products<0>();
    pin(s);
    release(barriers_.k[0]);
    hide(0, s);
    softmax_.run(s, kFactor);
    pack(s, weights);
    await_keys(1);
#pragma unroll 1
    for (int block = 1; block < n_blocks; ++block) {
      score(block, s);
      weigh(block - 1, weights);
      wait_products<1>();
      pin(s);
      release(barriers_.k[block % kStages]);
      hide(block, s);
      softmax_.run(s, kFactor);
      pin(s);
      // Here also because the compiler moves no exponentials across this loop, behind the wait.
      await_keys(block + 1);
      wait_products<0>();
      pin(out_);
      release(barriers_.v[(block - 1) % kStages]);
#pragma unroll
      for (int n = 0; n < kHead / 8; ++n) {
#pragma unroll
        for (int j = 0; j < 4; ++j) out_[n][j] *= softmax_.shrink[j / 2];
      }
      pack(s, weights);
    }
    fence_products();
    weigh(n_blocks - 1, weights);
    wait_products<0>();
    pin(out_);
  }

  __device__ void write(const AttentionArgs& args, const bf16* gates, bf16* out) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = softmax_.sum[half];
      sum += __shfl_xor_sync(0xffffffffU, sum, 1);
      sum += __shfl_xor_sync(0xffffffffU, sum, 2);
      const int packed = work_.first + first_ + warp() * 16 + lane() / 4 + 8 * half;
      if (packed >= work_.n_packed) continue;
      const std::int64_t row = work_.row_begin + packed / work_.n_heads;
      const int head = work_.kv_head * work_.n_heads + packed % work_.n_heads;
      const bf16* gate = gates + row * args.gate_stride + 2 * head * kHead + lane() % 4 * 2;
      bf16* to = out + (row * args.n_heads + head) * kHead + lane() % 4 * 2;
      const float inverse = 1.0f / sum;
      float2 g[kHead / 8];  // all read before anything is written
#pragma unroll
      for (int n = 0; n < kHead / 8; ++n) g[n] = load_pair(gate + 8 * n);
#pragma unroll
      for (int n = 0; n < kHead / 8; ++n) {
        store_pair(to + 8 * n,
                   {__fdividef(out_[n][2 * half] * inverse, 1.0f + __expf(-g[n].x)),
                    __fdividef(out_[n][2 * half + 1] * inverse, 1.0f + __expf(-g[n].y))});
      }
    }
  }

 private:
  __device__ static int lane() {
    return static_cast<int>(threadIdx.x) % 32;
  }
  __device__ static int warp() {
    return static_cast<int>(threadIdx.x) % kGroup / 32;
  }
  __device__ static void release(Stage& stage) {
    if (lane() == 0) stage.free.arrive();
  }

  __device__ void await_keys(int block) {
    if (block < work_.n_blocks()) barriers_.k[block % kStages].full.wait(block / kStages % 2);
  }

  // s = q k^T, in the background.
  __device__ void score(int block, float (&s)[kKeys / 8][4]) {
    const std::uint64_t keys = slab_operand(shared_.k[block % kStages], sizeof shared_.k[0][0]);
    fence_products();
#pragma unroll
    for (int i = 0; i < kHead / 16; ++i) {
      const int slab = i / (kSlabColumns / 16), in_row = i % (kSlabColumns / 16) * 32;
      multiply(s, moved(queries_, slab * static_cast<int>(sizeof shared_.q[0]) + in_row),
               moved(keys, slab * static_cast<int>(sizeof shared_.k[0][0]) + in_row), i > 0);
    }
    commit_products();
  }

  // out += weights v, in the background.
  __device__ void weigh(int block, const Weights& weights) {
    Stage& stage = barriers_.v[block % kStages];
    stage.full.wait(block / kStages % 2);
    const std::uint64_t values = slab_operand(shared_.v[block % kStages], sizeof shared_.v[0][0]);
#pragma unroll
    for (int i = 0; i < kKeys / 16; ++i) {
      multiply_add(out_, weights[i], moved(values, i * 16 * kSlabRowBytes));
    }
    commit_products();
  }

  // Keys behind a query's own place.
  __device__ void hide(int block, float (&s)[kKeys / 8][4]) const {
    const int key0 = block * kKeys;
    if (key0 + kKeys - 1 <= work_.place_of(first_)) return;
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (key0 + 8 * n + lane() % 4 * 2 + j % 2 > last_key_[j / 2]) s[n][j] = -INFINITY;
      }
    }
  }

  const Work& work_;
  Shared& shared_;
  Barriers& barriers_;
  int first_;
  std::uint64_t queries_;
  int last_key_[2];
  Softmax softmax_;
  float out_[kHead / 8][4] = {};
};

#endif

__global__ void __launch_bounds__(kThreads, 1)
    sm90_attention_kernel(AttentionArgs args, AttentionTensors<bf16> t) {
#ifdef JEMM_HAS_WGMMA
  extern __shared__ char memory[];
  __shared__ Barriers barriers;
  const auto misaligned = shared_address(memory) % kAlignment;
  Shared& shared = *reinterpret_cast<Shared*>(memory + (kAlignment - misaligned) % kAlignment);
  __shared__ Work work;
  if (threadIdx.x == 0) {
    work.find(args);
    barriers.q.init(kGroup);
    for (Stage* stages : {barriers.k, barriers.v}) {
      for (int i = 0; i < kStages; ++i) {
        stages[i].full.init(kCopyWarps * 32);
        stages[i].free.init(2 * kGroup / 32);  // warps that compute
      }
    }
  }
  __syncthreads();
  if (work.is_empty()) return;

  // The same in all lanes, which the compiler cannot know.
  const int group = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / kGroup, 0);
  if (group == 0) {
    give_registers<kCopyRegisters>();
    copy_queries(args, t.q, work, shared);
    copy_rows(args, t, work, shared, barriers);
  } else {
    take_registers<kComputeRegisters>();
    Computing computing(work, shared, barriers, (group - 1) * kQueries / 2);
    computing.run();
    computing.write(args, t.gates, t.out);
  }
#endif
}

bool is_built() {
  // Without a body for this device's architecture the kernel has no barriers.
  cudaFuncAttributes attributes{};
  cuda_check(cudaFuncGetAttributes(&attributes, sm90_attention_kernel), "attention");
  return attributes.sharedSizeBytes > 0;
}

}  // namespace

bool sm90_attention_takes(const AttentionArgs& args, const AttentionTensors<bf16>& t) {
  static const bool built = is_built();
  const auto whole = [](const auto* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; };
  return built && args.head_dim == kHead && args.v_stride % 8 == 0 && args.gate_stride % 2 == 0 &&
         whole(t.q) && whole(t.k) && whole(t.v) && whole(t.gates) && whole(t.out);
}

void sm90_attention(const AttentionArgs& args, const AttentionTensors<bf16>& t,
                    StreamHandle stream) {
  cuda_check(cudaFuncSetAttribute(sm90_attention_kernel,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes),
             "attention");
  const int n_parts =
      (kAttentionTileRows * (args.n_heads / args.n_kv_heads) + kQueries - 1) / kQueries;
  const auto grid = static_cast<unsigned>(args.n_tiles * n_parts * args.n_kv_heads);
  sm90_attention_kernel<<<grid, kThreads, kSharedBytes, stream>>>(args, t);
  check_launch("attention");
}

}  // namespace jemm::gpu

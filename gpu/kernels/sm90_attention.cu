// Causal attention over chains of runs in BF16 for heads of 256, on the matrix unit of sm_90a.
//
// A block takes 128 packed queries of one key head: the heads that share it, row after row, so that
// a tile of 64 rows and 6 heads a key head is three whole blocks, and a leaf of 16 rows one. Work:
// 4 Dh operations a query and visible key. A query's result depends on its chain alone: key blocks
// begin at the root's start, and blocks without a visible key change nothing.
#include "gpu/kernels/sm90_attention.cuh"

#include "gpu/cuda.h"
#include "gpu/kernels/attention.cuh"
#include "gpu/kernels/launch.cuh"

namespace jemm::gpu {
namespace {

using namespace sm90;

constexpr int kHead = 256;
using Shape = AttentionShape<kHead, 80, 2>;

#ifdef JEMM_HAS_WGMMA

constexpr int kKeys = Shape::kKeys;

// What a block computes. In shared memory, for want of registers.
struct Work {
  int run, row_begin, first_place;
  unsigned n_heads;  // that share the key head
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
    first_place = tile.first_place;
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

// Where a packed query of the block begins in a tensor of heads.
__device__ std::int64_t query_offset(const Work& work, int query, int row_stride, int head_stride) {
  const unsigned packed = static_cast<unsigned>(min(work.first + query, work.n_packed - 1));
  const unsigned row = packed / work.n_heads, head = packed - row * work.n_heads;
  return std::int64_t{work.row_begin + static_cast<int>(row)} * row_stride +
         static_cast<int>(work.kv_head * work.n_heads + head) * head_stride;
}

// A block's queries, or their gates, by the copying warpgroup.
__device__ void copy_queries(const Work& work, const bf16* from, int row_stride, int head_stride,
                             Shape::Shared& shared) {
  copy_rows<Shape, kGroup>(static_cast<int>(threadIdx.x), from, shared.q, [&](int i) {
    return Source{query_offset(work, i, row_stride, head_stride), true};
  });
}

// Queries, then keys and values, then gates into the queries' place once these have met the last
// keys.
__device__ void copy(const AttentionArgs& args, const AttentionTensors<bf16>& t, const Work& work,
                     Shape::Shared& shared, Shape::Barriers& barriers) {
  const int stride = copies_keys() ? args.n_kv_heads * kHead : static_cast<int>(args.v_stride);
  copy_queries(work, t.q, args.n_heads * kHead, kHead, shared);
  ChainRows chain_row(args.runs, work.run);
  copy_stages<Shape>(work.n_blocks(), (copies_keys() ? t.k : t.v) + work.kv_head * kHead, shared,
                     barriers, [&](int block, int i) {
                       const int place = block * kKeys + i;
                       const int row = chain_row(min(place, work.n_keys - 1));
                       return Source{std::int64_t{row} * stride, place < work.n_keys};
                     });
  const int last = work.n_blocks() - 1;
  barriers.k[last % Shape::kStages].free.wait(last / Shape::kStages % 2);
  copy_queries(work, t.gates, static_cast<int>(args.gate_stride), 2 * kHead, shared);
  barriers.q.arrive_after_copies();
  commit_copies();
  wait_copies<0>();
}

__device__ void attend(const Work& work, Computing<Shape>& computing, int first) {
  const int first_place = work.place_of(first);
  const int last_key[2] = {work.place_of(computing.row(0)), work.place_of(computing.row(1))};
  const auto hide = [&](int block, Computing<Shape>::Scores& s) {
    const int key0 = block * kKeys;
    if (key0 + kKeys - 1 <= first_place) return;
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (key0 + 8 * n + lane() % 4 * 2 + j % 2 > last_key[j / 2]) s[n][j] = -INFINITY;
      }
    }
  };
  computing.run(work.n_blocks(), kLog2E / 16.0f, hide);  // 16 = sqrt(kHead)
}

// The gated results of a warp, through the gates' place in shared memory so that whole rows are
// written.
__device__ void write(const AttentionArgs& args, const Work& work,
                      const Computing<Shape>& computing, int first, Shape::Shared& shared,
                      bf16* out) {
  const auto piece = [&](int row, int n) {  // columns 8 n to 8 n + 7
    return shared.q[n / 8][0] + slab_piece(row, n % 8) / static_cast<int>(sizeof(bf16));
  };
  const float inverse[2] = {1.0f / computing.sum(0), 1.0f / computing.sum(1)};
#pragma unroll
  for (int slab = 0; slab < Shape::kSlabs; ++slab) {
    const auto pair_at = [&](int n, int half) {
      return piece(computing.row(half), 8 * slab + n) + lane() % 4 * 2;
    };
    float2 gates[8][2];  // all read before any is overwritten
#pragma unroll
    for (int i = 0; i < 16; ++i) gates[i / 2][i % 2] = load_pair(pair_at(i / 2, i % 2));
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const int n = i / 2, half = i % 2;
      const float* x = computing.results()[8 * slab + n] + 2 * half;
      const auto gated = [&](float value, float gate) {
        return value * inverse[half] * reciprocal(1.0f + power_of_two(-kLog2E * gate));
      };
      store_pair(pair_at(n, half), {gated(x[0], gates[n][half].x), gated(x[1], gates[n][half].y)});
    }
  }
  __syncwarp();
#pragma unroll
  for (int i = lane() / 8; i < 16; i += 4) {
    const int query = first + warp() * 16 + i;
    if (work.first + query >= work.n_packed) break;
    bf16* to = out + query_offset(work, query, args.n_heads * kHead, kHead);
#pragma unroll
    for (int n = lane() % 8; n < kHead / 8; n += 8) {
      *reinterpret_cast<uint4*>(to + 8 * n) = *reinterpret_cast<const uint4*>(piece(query, n));
    }
  }
}

#endif

__global__ void __launch_bounds__(kThreads, 1)
    sm90_attention_kernel(AttentionArgs args, AttentionTensors<bf16> t) {
#ifdef JEMM_HAS_WGMMA
  extern __shared__ char memory[];
  __shared__ Shape::Barriers barriers;
  __shared__ Work work;
  Shape::Shared& shared = aligned<Shape>(memory);
  if (threadIdx.x == 0) barriers.init();
  wait_for_work_before();
  if (threadIdx.x == 0) work.find(args);
  __syncthreads();
  if (work.is_empty()) return;

  const int group = group_index();
  if (group == 0) {
    give_registers<kCopyRegisters>();
    copy(args, t, work, shared, barriers);
  } else {
    take_registers<kComputeRegisters>();
    const int first = (group - 1) * kQueries / 2;
    Computing<Shape> computing(shared, barriers, first);
    attend(work, computing, first);
    barriers.q.wait(1);
    write(args, work, computing, first, shared, t.out);
  }
#endif
}

}  // namespace

bool sm90_attention_takes(const AttentionArgs& args, const AttentionTensors<bf16>& t) {
  static PerDevice<bool> built;
  const auto whole = [](const auto* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; };
  return has_body(sm90_attention_kernel, built) && args.head_dim == kHead &&
         args.v_stride % 8 == 0 && args.gate_stride % 8 == 0 && whole(t.q) && whole(t.k) &&
         whole(t.v) && whole(t.gates) && whole(t.out);
}

void sm90_attention(const AttentionArgs& args, const AttentionTensors<bf16>& t,
                    StreamHandle stream) {
  allow_shared(sm90_attention_kernel, Shape::kSharedBytes, "attention");
  const int n_parts =
      (kAttentionTileRows * (args.n_heads / args.n_kv_heads) + kQueries - 1) / kQueries;
  const auto grid = static_cast<unsigned>(args.n_tiles * n_parts * args.n_kv_heads);
  launch("attention", sm90_attention_kernel,
         {.grid = grid, .n_threads = kThreads, .n_shared = Shape::kSharedBytes}, stream, args, t);
}

}  // namespace jemm::gpu

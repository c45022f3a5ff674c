// The gated delta rule in BF16, chunk after chunk: what needs the state.
//
// One block a (run, value head, 64 columns of Dv). Four warps compute, each with 16 columns of the
// state, transposed: S^T [16, Dk] is 64 accumulators a lane from the first chunk to the last, and
// rounded to BF16 it is the left operand of S^T K'^T and S^T q^T, as U^T is of U^T ahead^T and
// U^T k. So neither leaves a warp, and chunks wait for their operands alone, which the other four
// warps copy into one half of shared memory while the other half is used. Work: 64 Dk 6 Dv +
// 64 64 2 Dv operations a chunk and head on the matrix unit; bytes of a chunk and block 64 KB, from
// the second-level cache. All sums and the state are FP32.
#include "gpu/kernels/delta_bf16.cuh"
#include "gpu/kernels/launch.cuh"

namespace jemm::gpu {
namespace {

using namespace delta;

constexpr int kComputing = 4;  // warps
constexpr int kColumns = 16;   // of the state, a warp
constexpr int kSlice = kComputing * kColumns;
constexpr int kCopiers = kThreads - 32 * kComputing;

// A chunk's operands.
struct Stage {
  static constexpr int kStride = kHead + 8;
  static constexpr int kShortStride = 64 + 8;
  alignas(16) bf16 solved_k[kChunk * kStride];
  alignas(16) bf16 q[kChunk * kStride];
  alignas(16) bf16 k[kChunk * kStride];
  alignas(16) bf16 ahead[kChunk * kShortStride];
  alignas(16) bf16 values[kChunk * kShortStride];  // V', then the result on its way out
  alignas(16) float2 decays[kChunk];               // exp(c_i), exp(c_last - c_i)
  float decay;                                     // exp(c_last)
};
static_assert(2 * sizeof(Stage) == delta_shared_bytes(sizeof(bf16)));

// By the copying warps; when it returns, this thread's share is there.
__device__ void copy_stage(const DeltaArgs<bf16>& args, const HeadPlace& place, int column0,
                           const bf16* qkv, const DeltaChunk& chunk, Stage& stage) {
  const int thread = static_cast<int>(threadIdx.x) - 32 * kComputing;
  const int n_heads = args.n_value_heads, stride = static_cast<int>(place.stride);
  const std::int64_t at = static_cast<std::int64_t>(chunk.row_begin) * n_heads + place.head;
  const bf16* rows = qkv + chunk.row_begin * place.stride;
  float2 decays = {};
  if (thread < chunk.n_rows) decays = load_pair(args.decays + (at + thread * n_heads) * 2);
  copy_tile<kHead, kCopiers>(args.solved_k + at * args.key_dim, n_heads * args.key_dim,
                             chunk.n_rows, args.key_dim, stage.solved_k, Stage::kStride, thread);
  copy_tile<kHead, kCopiers>(rows + place.q, stride, chunk.n_rows, args.key_dim, stage.q,
                             Stage::kStride, thread);
  copy_tile<kSlice, kCopiers>(args.solved_v + at * args.value_dim + column0,
                              n_heads * args.value_dim, chunk.n_rows, args.value_dim - column0,
                              stage.values, Stage::kShortStride, thread);
  copy_tile<kChunk, kCopiers>(args.ahead + at * kChunk, n_heads * kChunk, chunk.n_rows, kChunk,
                              stage.ahead, Stage::kShortStride, thread);
  copy_tile<kHead, kCopiers>(rows + place.k, stride, chunk.n_rows, args.key_dim, stage.k,
                             Stage::kStride, thread);
  if (thread < kChunk) stage.decays[thread] = decays;
  if (thread == chunk.n_rows - 1) stage.decay = decays.x;
  commit_copies();
  wait_copies<0>();
}

// The state's columns of a warp in a slot: move(accumulator, its place in args.states).
template <typename Move>
__device__ void for_state(const DeltaArgs<bf16>& args, int slot, int head, int column0,
                          float (&state)[kHead / 8][4], const Move& move) {
  const Lane lane;
  const std::int64_t begin =
      (static_cast<std::int64_t>(slot) * args.n_value_heads + head) * args.key_dim;
#pragma unroll
  for (int n = 0; n < kHead / 8; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int d = 8 * n + 2 * lane.t + e % 2, column = column0 + lane.g + e / 2 * 8;
      if (d < args.key_dim && column < args.value_dim) {
        move(state[n][e], args.states + (begin + d) * args.value_dim + column);
      }
    }
  }
}

// One chunk: the state moves on, the result [64, 16] stands in the warp's columns of stage.values.
__device__ void compute(float (&state)[kHead / 8][4], float scale, int column, Stage& stage) {
  const Lane lane;
  const int along = lane_offset<Fast::kSum>(Stage::kStride);
  const int across = lane_offset<Fast::kOuter>(Stage::kStride);
  const int short_along = lane_offset<Fast::kSum>(Stage::kShortStride);
  const int short_across = lane_offset<Fast::kOuter>(Stage::kShortStride);

  float seen[kChunk / 8][4] = {}, result[kChunk / 8][4] = {};  // columns are rows of the chunk
#pragma unroll
  for (int d = 0; d < kHead; d += 16) {
    const Operand s(state[d / 8], state[d / 8 + 1]);
#pragma unroll
    for (int i = 0; i < kChunk; i += 16) {
      multiply<Fast::kSum>(seen[i / 8], seen[i / 8 + 1], s.r,
                           stage.solved_k + along + i * Stage::kStride + d);
    }
#pragma unroll
    for (int i = 0; i < kChunk; i += 16) {
      multiply<Fast::kSum>(result[i / 8], result[i / 8 + 1], s.r,
                           stage.q + along + i * Stage::kStride + d);
    }
  }

  // U^T as two left operands: as it is, and decayed to the chunk's end.
  std::uint32_t u[kChunk / 16][4], at_end[kChunk / 16][4];
#pragma unroll
  for (int m = 0; m < kChunk / 16; ++m) {
    std::uint32_t v[4];
    load_matrices_transposed(v,
                             stage.values + short_across + 16 * m * Stage::kShortStride + column);
#pragma unroll
    for (int side = 0; side < 2; ++side) {  // rows 16 m + 8 side + 2 t and the next
      const int n = 2 * m + side;
      const float4 decays = *reinterpret_cast<const float4*>(&stage.decays[8 * n + 2 * lane.t]);
      const float first = decays.x * scale, second = decays.z * scale;
#pragma unroll
      for (int half = 0; half < 2; ++half) {  // columns g and g + 8
        const float2 value = unpack(v[side + 2 * half]);
        const float x = value.x - seen[n][2 * half], y = value.y - seen[n][2 * half + 1];
        u[m][2 * side + half] = pack_pair(x, y);
        at_end[m][2 * side + half] = pack_pair(x * decays.y, y * decays.w);
        result[n][2 * half] *= first;
        result[n][2 * half + 1] *= second;
      }
    }
  }
#pragma unroll
  for (int n = 0; n < kHead / 8; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) state[n][e] *= stage.decay;
  }
#pragma unroll
  for (int m = 0; m < kChunk / 16; ++m) {
#pragma unroll
    for (int d = 0; d < kHead; d += 16) {
      multiply<Fast::kOuter>(state[d / 8], state[d / 8 + 1], at_end[m],
                             stage.k + across + 16 * m * Stage::kStride + d);
    }
#pragma unroll
    for (int i = 16 * m; i < kChunk; i += 16) {  // rows before 16 m do not see U's
      multiply<Fast::kSum>(result[i / 8], result[i / 8 + 1], u[m],
                           stage.ahead + short_along + i * Stage::kShortStride + 16 * m);
    }
  }

  __syncwarp();  // every lane has its values
#pragma unroll
  for (int n = 0; n < kChunk / 8; ++n) {
    bf16* to = stage.values + (8 * n + lane.g) * Stage::kShortStride + column + 2 * lane.t;
    *reinterpret_cast<std::uint32_t*>(to) = turned(pack_pair(result[n][0], result[n][1]));
    *reinterpret_cast<std::uint32_t*>(to + 8) = turned(pack_pair(result[n][2], result[n][3]));
  }
  __syncwarp();
}

__global__ void __launch_bounds__(kThreads, 1)
    delta_scan_kernel(DeltaArgs<bf16> args, const DeltaRun* runs, const bf16* qkv, bf16* out) {
  extern __shared__ uint4 memory[];
  auto* stages = reinterpret_cast<Stage*>(memory);
  wait_for_work_before();
  const DeltaRun run = runs[blockIdx.x];
  const DeltaChunk* chunks = args.chunks + run.first_chunk;
  const HeadPlace place(args, static_cast<int>(blockIdx.y));
  const int warp = static_cast<int>(threadIdx.x) / 32;
  DeltaChunk next = chunks[0];
  // Both kinds of warps pass one barrier a chunk: then the chunk is there, and the one before has
  // been used.
  if (warp >= kComputing) {
    for (int c = 0; c < run.n_chunks; ++c) {
      const DeltaChunk chunk = next;
      if (c + 1 < run.n_chunks) next = chunks[c + 1];
      copy_stage(args, place, static_cast<int>(blockIdx.z) * kSlice, qkv, chunk, stages[c % 2]);
      __syncthreads();
    }
    return;
  }
  const int column = warp * kColumns, column0 = static_cast<int>(blockIdx.z) * kSlice + column;
  const float scale = 1.0f / sqrtf(static_cast<float>(args.key_dim));
  float state[kHead / 8][4] = {};
  if (run.from_slot >= 0) {
    for_state(args, run.from_slot, place.head, column0, state,
              [](float& to, const float* from) { to = *from; });
  }
  for (int c = 0; c < run.n_chunks; ++c) {
    const DeltaChunk chunk = next;
    if (c + 1 < run.n_chunks) next = chunks[c + 1];
    Stage& stage = stages[c % 2];
    __syncthreads();
    compute(state, scale, column, stage);
    const std::int64_t at =
        static_cast<std::int64_t>(chunk.row_begin) * args.n_value_heads + place.head;
    store_tile<kChunk, kColumns>(stage.values + column, Stage::kShortStride, chunk.n_rows,
                                 args.value_dim - column0, out + at * args.value_dim + column0,
                                 args.n_value_heads * args.value_dim);
  }
  if (run.to_slot >= 0) {
    for_state(args, run.to_slot, place.head, column0, state,
              [](const float& from, float* to) { *to = from; });
  }
}

}  // namespace

void delta_scan(const DeltaArgs<bf16>& args, const DeltaRun* runs, std::int64_t n_runs,
                const bf16* qkv, bf16* out, StreamHandle stream) {
  if (n_runs == 0) return;
  check_heads(args);
  constexpr std::size_t kShared = 2 * sizeof(Stage);
  allow_shared(delta_scan_kernel, kShared, "delta_scan");
  const dim3 grid(static_cast<unsigned>(n_runs), static_cast<unsigned>(args.n_value_heads),
                  static_cast<unsigned>((args.value_dim + kSlice - 1) / kSlice));
  launch("delta_scan", delta_scan_kernel,
         {.grid = grid, .n_threads = kThreads, .n_shared = kShared}, stream, args, runs, qkv, out);
}

}  // namespace jemm::gpu

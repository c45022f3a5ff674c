// The gated delta rule in FP32: everything in plain multiply-adds, for verification.
//
// Prepare: one block a (chunk of 64 rows, value head), the triangular system solved for every
// column of [V | K] by forward substitution, a column a thread. Scan: one block a (run, value head,
// slice of Dv), with the slice of the state in shared memory.
#include "gpu/kernels/delta_rule.cuh"
#include "gpu/kernels/tile_product.cuh"

namespace jemm::gpu {
namespace {

using namespace delta;

constexpr int kRowStride = kHead + 4;  // floats
constexpr int kScoreStride = kChunk + 4;

// [64, kWidth] to shared memory by the whole block, zeros behind n_rows and `width`.
template <int kWidth>
__device__ void load_tile(const float* from, std::int64_t stride, int n_rows, int width, float* to,
                          int to_stride) {
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < kChunk * kWidth; i += kThreads) {
    const int row = i / kWidth, column = i % kWidth;
    const bool there = row < n_rows && column < width;
    to[row * to_stride + column] = there ? from[row * stride + column] : 0.0f;
  }
}

struct PrepareShared {
  alignas(16) float q[kChunk * kRowStride];
  alignas(16) float k[kChunk * kRowStride];
  alignas(16) float below[kChunk * kScoreStride];  // M transposed
  Gates gates;
};

constexpr int kSolved = 16;  // unknowns in registers

// Solves (I + M) x = x in place for one column.
__device__ void solve_column(const float* below, float* x) {
  for (int begin = 0; begin < kChunk; begin += kSolved) {
    float own[kSolved];
#pragma unroll
    for (int i = 0; i < kSolved; ++i) own[i] = x[(begin + i) * kRowStride];
#pragma unroll 4
    for (int j = 0; j < begin; ++j) {
      const float known = x[j * kRowStride];
      const float* factors = below + j * kScoreStride + begin;
#pragma unroll
      for (int i = 0; i < kSolved; ++i) own[i] -= factors[i] * known;
    }
#pragma unroll
    for (int j = 0; j < kSolved; ++j) {
      const float* factors = below + (begin + j) * kScoreStride + begin;
#pragma unroll
      for (int i = j + 1; i < kSolved; ++i) own[i] -= factors[i] * own[j];
    }
#pragma unroll
    for (int i = 0; i < kSolved; ++i) x[(begin + i) * kRowStride] = own[i];
  }
}

__global__ void __launch_bounds__(kThreads)
    delta_prepare_kernel(DeltaArgs<float> args, const float* qkv, const float* a, const float* b) {
  extern __shared__ uint4 memory[];
  auto& shared = *reinterpret_cast<PrepareShared*>(memory);
  const Gates& gates = shared.gates;
  const DeltaChunk chunk = args.chunks[blockIdx.x];
  const HeadPlace place(args, static_cast<int>(blockIdx.y));
  const float* rows = qkv + chunk.row_begin * place.stride;
  const std::int64_t first =
      static_cast<std::int64_t>(chunk.row_begin) * args.n_value_heads + place.head;
  load_tile<kHead>(rows + place.q, place.stride, chunk.n_rows, args.key_dim, shared.q, kRowStride);
  load_tile<kHead>(rows + place.k, place.stride, chunk.n_rows, args.key_dim, shared.k, kRowStride);
  if (threadIdx.x < 32) {
    fill_gates(args, chunk, place.head, read_gates(args, chunk, place.head, a, b), shared.gates);
  }
  __syncthreads();

  // Scores: a warp takes 16 rows and 32 columns of both.
  const int warp = static_cast<int>(threadIdx.x) / 32, row0 = warp % 4 * 16,
            column0 = warp / 4 * 32;
  const Lane lane;
  float ahead[4][4] = {}, below[4][4] = {};
  using Product = TileProduct<Fp32Math, Fast::kSum, Fast::kSum, 4, kHead>;
  Product::run(ahead, shared.q + row0 * kRowStride, kRowStride, shared.k + column0 * kRowStride,
               kRowStride);
  Product::run(below, shared.k + row0 * kRowStride, kRowStride, shared.k + column0 * kRowStride,
               kRowStride);
  const float scale = 1.0f / sqrtf(static_cast<float>(args.key_dim));
#pragma unroll
  for (int n = 0; n < 4; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int i = row0 + lane.g + e / 2 * 8, j = column0 + 8 * n + 2 * lane.t + e % 2;
      const float decay = j <= i ? exp2f(difference(gates.cumulated[i], gates.cumulated[j])) : 0.0f;
      shared.below[j * kScoreStride + i] = j < i ? below[n][e] * decay * gates.beta[i] : 0.0f;
      if (i < chunk.n_rows) {
        args.ahead[(first + static_cast<std::int64_t>(i) * args.n_value_heads) * kChunk + j] =
            ahead[n][e] * decay * scale;
      }
    }
  }
  __syncthreads();

  // q has been used: V's columns take its place.
  load_tile<kHead>(rows + place.v, place.stride, chunk.n_rows, args.value_dim, shared.q,
                   kRowStride);
  __syncthreads();
  const int column = static_cast<int>(threadIdx.x) % kHead;
  const bool is_value = static_cast<int>(threadIdx.x) < kHead;
  const int width = is_value ? args.value_dim : args.key_dim;
  if (column >= width) return;
  float* x = (is_value ? shared.q : shared.k) + column;
  for (int i = 0; i < kChunk; ++i) {
    x[i * kRowStride] *= is_value ? gates.beta[i] : gates.key_factor[i];
  }
  solve_column(shared.below, x);
  float* solved = (is_value ? args.solved_v : args.solved_k) + first * width + column;
  const std::int64_t step = static_cast<std::int64_t>(args.n_value_heads) * width;
  for (int i = 0; i < chunk.n_rows; ++i) solved[i * step] = x[i * kRowStride];
}
static_assert(2 * kHead == kThreads);

constexpr int kSlice = 32;  // columns of the state a block keeps
constexpr int kTiles = 2;   // of 8 columns, a warp

struct ScanShared {
  static constexpr int kKeyStride = kHead + 8;
  static constexpr int kSliceStride = kSlice + 8;
  alignas(16) float solved_k[kChunk * kRowStride];
  alignas(16) float q[kChunk * kRowStride];
  alignas(16) float k[kChunk * kKeyStride];
  alignas(16) float ahead[kChunk * kScoreStride];
  alignas(16) float state[kHead * kSliceStride];
  alignas(16) float u[kChunk * kSliceStride];
  float2 decays[kChunk];
};
static_assert(sizeof(ScanShared) == delta_shared_bytes(sizeof(float)));
static_assert(sizeof(PrepareShared) <= sizeof(ScanShared));
constexpr int kSliceStride = ScanShared::kSliceStride;

// The state's slice of a slot: move(its place in shared memory, in args.states, whether it is
// there).
template <typename Move>
__device__ void for_state(const DeltaArgs<float>& args, int slot, int head, int column0,
                          const Move& move) {
  const std::int64_t begin =
      (static_cast<std::int64_t>(slot) * args.n_value_heads + head) * args.key_dim * args.value_dim;
  for (int i = static_cast<int>(threadIdx.x); i < kHead * kSlice; i += kThreads) {
    const int d = i / kSlice, c = i % kSlice;
    const bool there = d < args.key_dim && column0 + c < args.value_dim;
    move(d * kSliceStride + c, begin + d * args.value_dim + column0 + c, there);
  }
}

__global__ void __launch_bounds__(kThreads)
    delta_scan_kernel(DeltaArgs<float> args, const DeltaRun* runs, const float* qkv, float* out) {
  extern __shared__ uint4 memory[];
  auto& shared = *reinterpret_cast<ScanShared*>(memory);
  const DeltaRun run = runs[blockIdx.x];
  const HeadPlace place(args, static_cast<int>(blockIdx.y));
  const int column0 = static_cast<int>(blockIdx.z) * kSlice;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const Lane lane;
  const float scale = 1.0f / sqrtf(static_cast<float>(args.key_dim));
  for_state(args, max(run.from_slot, 0), place.head, column0,
            [&](int to, std::int64_t from, bool there) {
              shared.state[to] = there && run.from_slot >= 0 ? args.states[from] : 0.0f;
            });

  // A warp's part of [64, kSlice]: 16 rows, 8 kTiles columns.
  const int row0 = warp % 4 * 16, slice0 = warp / 4 * 8 * kTiles;
  for (int c = 0; c < run.n_chunks; ++c) {
    const DeltaChunk chunk = args.chunks[run.first_chunk + c];
    const std::int64_t n_heads = args.n_value_heads, at = chunk.row_begin * n_heads + place.head;
    const float* rows = qkv + chunk.row_begin * place.stride;
    __syncthreads();  // the chunk before has been used
    load_tile<kHead>(args.solved_k + at * args.key_dim, n_heads * args.key_dim, chunk.n_rows,
                     args.key_dim, shared.solved_k, kRowStride);
    load_tile<kHead>(rows + place.q, place.stride, chunk.n_rows, args.key_dim, shared.q,
                     kRowStride);
    load_tile<kHead>(rows + place.k, place.stride, chunk.n_rows, args.key_dim, shared.k,
                     ScanShared::kKeyStride);
    load_tile<kChunk>(args.ahead + at * kChunk, n_heads * kChunk, chunk.n_rows, kChunk,
                      shared.ahead, kScoreStride);
    if (thread < kChunk) {
      shared.decays[thread] =
          thread < chunk.n_rows ? load_pair(args.decays + (at + thread * n_heads) * 2) : float2{};
    }
    __syncthreads();

    float u[kTiles][4] = {}, result[kTiles][4] = {};
    using Product = TileProduct<Fp32Math, Fast::kSum, Fast::kOuter, kTiles, kHead>;
    Product::run(u, shared.solved_k + row0 * kRowStride, kRowStride, shared.state + slice0,
                 kSliceStride);
    Product::run(result, shared.q + row0 * kRowStride, kRowStride, shared.state + slice0,
                 kSliceStride);
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int i = row0 + lane.g + e / 2 * 8, j = slice0 + 8 * n + 2 * lane.t + e % 2;
        const bool there = i < chunk.n_rows && column0 + j < args.value_dim;
        const float v =
            there ? args.solved_v[(at + i * n_heads) * args.value_dim + column0 + j] : 0.0f;
        u[n][e] = v - u[n][e];
        result[n][e] *= shared.decays[i].x * scale;
        shared.u[i * kSliceStride + j] = u[n][e];
      }
    }
    __syncthreads();
    TileProduct<Fp32Math, Fast::kSum, Fast::kOuter, kTiles, kChunk>::run(
        result, shared.ahead + row0 * kScoreStride, kScoreStride, shared.u + slice0, kSliceStride);
    __syncthreads();  // u has been used as it is
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int i = row0 + lane.g + e / 2 * 8, j = slice0 + 8 * n + 2 * lane.t + e % 2;
        if (i < chunk.n_rows && column0 + j < args.value_dim) {
          out[(at + i * n_heads) * args.value_dim + column0 + j] = result[n][e];
        }
        shared.u[i * kSliceStride + j] = u[n][e] * shared.decays[i].y;
      }
    }
    __syncthreads();
    const float decay = shared.decays[chunk.n_rows - 1].x;
    const int d0 = warp * 16;
    float state[kSlice / 8][4];
#pragma unroll
    for (int n = 0; n < kSlice / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int d = d0 + lane.g + e / 2 * 8, j = 8 * n + 2 * lane.t + e % 2;
        state[n][e] = shared.state[d * kSliceStride + j] * decay;
      }
    }
    TileProduct<Fp32Math, Fast::kOuter, Fast::kOuter, kSlice / 8, kChunk>::run(
        state, shared.k + d0, ScanShared::kKeyStride, shared.u, kSliceStride);
#pragma unroll
    for (int n = 0; n < kSlice / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int d = d0 + lane.g + e / 2 * 8, j = 8 * n + 2 * lane.t + e % 2;
        shared.state[d * kSliceStride + j] = state[n][e];
      }
    }
  }
  if (run.to_slot < 0) return;
  __syncthreads();
  for_state(args, run.to_slot, place.head, column0, [&](int from, std::int64_t to, bool there) {
    if (there) args.states[to] = shared.state[from];
  });
}
static_assert(kWarps * 16 == kHead && kSlice == 2 * 8 * kTiles);

}  // namespace

void delta_prepare(const DeltaArgs<float>& args, std::int64_t n_chunks, const float* qkv,
                   const float* a, const float* b, StreamHandle stream) {
  if (n_chunks == 0) return;
  check_heads(args);
  allow_shared(delta_prepare_kernel, sizeof(PrepareShared), "delta_prepare");
  const dim3 grid(static_cast<unsigned>(n_chunks), static_cast<unsigned>(args.n_value_heads));
  delta_prepare_kernel<<<grid, kThreads, sizeof(PrepareShared), stream>>>(args, qkv, a, b);
  check_launch("delta_prepare");
}

void delta_scan(const DeltaArgs<float>& args, const DeltaRun* runs, std::int64_t n_runs,
                const float* qkv, float* out, StreamHandle stream) {
  if (n_runs == 0) return;
  check_heads(args);
  allow_shared(delta_scan_kernel, sizeof(ScanShared), "delta_scan");
  const dim3 grid(static_cast<unsigned>(n_runs), static_cast<unsigned>(args.n_value_heads),
                  static_cast<unsigned>((args.value_dim + kSlice - 1) / kSlice));
  delta_scan_kernel<<<grid, kThreads, sizeof(ScanShared), stream>>>(args, runs, qkv, out);
  check_launch("delta_scan");
}

}  // namespace jemm::gpu

// The gated delta rule, chunk after chunk: what needs the state.
//
// One block a (run, value head, slice of Dv), with the slice of the state [Dk, kSlice] in shared
// memory; the next chunk is read while one is computed. Per chunk and head 64 Dk (4 Dv) + 64 64 2
// Dv operations. Heads are padded with zeros to kHead. All sums are FP32.
#include "gpu/kernels/delta_rule.cuh"

namespace jemm::gpu {
namespace {

using namespace delta;

template <int kHead>
struct ScanShape {
  static constexpr int kSlice = kHead < 64 ? kHead : 64;  // columns of the state a block keeps
};

template <int kHead>
struct ScanShared {
  static constexpr int kSlice = ScanShape<kHead>::kSlice;
  static constexpr int kRowStride = kHead + 4;
  static constexpr int kKeyStride = kHead + 8;
  static constexpr int kScoreStride = kChunk + 4;
  static constexpr int kSliceStride = kSlice + 8;
  alignas(16) float solved_k[kChunk * kRowStride];
  alignas(16) float q[kChunk * kRowStride];
  alignas(16) float k[kChunk * kKeyStride];
  alignas(16) float ahead[kChunk * kScoreStride];
  alignas(16) float state[kHead * kSliceStride];
  alignas(16) float u[kChunk * kSliceStride];
  float from_start[kChunk], to_end[kChunk];
};

// The state's slice of a slot, in or out.
template <int kHead, typename Move>
__device__ void for_state(const DeltaArgs& args, int slot, int head, int column0,
                          const Move& move) {
  using S = ScanShared<kHead>;
  const std::int64_t begin =
      (static_cast<std::int64_t>(slot) * args.n_value_heads + head) * args.key_dim * args.value_dim;
  for (int i = static_cast<int>(threadIdx.x); i < kHead * S::kSlice; i += kThreads) {
    const int d = i / S::kSlice, c = i % S::kSlice;
    const bool there = d < args.key_dim && column0 + c < args.value_dim;
    move(d * S::kSliceStride + c, begin + d * args.value_dim + column0 + c, there);
  }
}

template <typename T, int kHead>
__global__ void __launch_bounds__(kThreads, 1)
    delta_scan_kernel(DeltaArgs args, const DeltaRun* runs, const T* qkv, T* out) {
  using Math = typename MathOf<T>::Type;
  using S = ScanShared<kHead>;
  constexpr int kSlice = S::kSlice;
  extern __shared__ uint4 memory[];
  S& shared = *reinterpret_cast<S*>(memory);
  const DeltaRun run = runs[blockIdx.x];
  const HeadPlace place(args, static_cast<int>(blockIdx.y));
  const int column0 = static_cast<int>(blockIdx.z) * kSlice;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const Lane lane;
  const float scale = 1.0f / sqrtf(static_cast<float>(args.key_dim));

  for_state<kHead>(args, max(run.from_slot, 0), place.head, column0,
                   [&](int to, std::int64_t from, bool there) {
                     shared.state[to] = there && run.from_slot >= 0 ? args.states[from] : 0.0f;
                   });

  // A warp's part of [64, kSlice]: 16 rows and 32 columns; warps beyond it idle.
  const int row0 = warp % 4 * 16, slice0 = warp / 4 * 32;
  const bool has_rows = slice0 < kSlice;
  constexpr int kStateTiles = kHead / 16 * (kSlice / 32);

  Rows<kHead, float> solved_k;
  Rows<kHead, T> q, k;
  Rows<kChunk, float> ahead;
  float2 decays = {};
  DeltaChunk next = args.chunks[run.first_chunk];
  const auto fetch = [&] {
    const std::int64_t at =
        static_cast<std::int64_t>(next.row_begin) * args.n_value_heads + place.head;
    const T* rows = qkv + next.row_begin * place.stride;
    solved_k.fetch(args.solved_k + at * args.key_dim,
                   static_cast<std::int64_t>(args.n_value_heads) * args.key_dim, next.n_rows,
                   args.key_dim);
    q.fetch(rows + place.q, place.stride, next.n_rows, args.key_dim);
    k.fetch(rows + place.k, place.stride, next.n_rows, args.key_dim);
    ahead.fetch(args.ahead + at * kChunk, static_cast<std::int64_t>(args.n_value_heads) * kChunk,
                next.n_rows, kChunk);
    if (thread < next.n_rows) {
      decays = *reinterpret_cast<const float2*>(
          args.decays + (at + static_cast<std::int64_t>(thread) * args.n_value_heads) * 2);
    }
  };
  fetch();

  for (int c = 0; c < run.n_chunks; ++c) {
    const DeltaChunk chunk = next;
    const std::int64_t first =
        static_cast<std::int64_t>(chunk.row_begin) * args.n_value_heads + place.head;
    __syncthreads();  // the chunk before has been used
    solved_k.store(shared.solved_k, S::kRowStride);
    q.store(shared.q, S::kRowStride);
    k.store(shared.k, S::kKeyStride);
    ahead.store(shared.ahead, S::kScoreStride);
    if (thread < kChunk) {
      shared.from_start[thread] = thread < chunk.n_rows ? decays.x : 0.0f;
      shared.to_end[thread] = thread < chunk.n_rows ? decays.y : 0.0f;
    }
    __syncthreads();
    if (c + 1 < run.n_chunks) {  // under way while this chunk is computed
      next = args.chunks[run.first_chunk + c + 1];
      fetch();
    }

    float v[4][4];
#pragma unroll
    for (int n = 0; n < 4; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int i = row0 + lane.g + e / 2 * 8, j = column0 + slice0 + 8 * n + 2 * lane.t + e % 2;
        const bool there = has_rows && i < chunk.n_rows && j < args.value_dim;
        v[n][e] = there
                      ? args.solved_v[(first + static_cast<std::int64_t>(i) * args.n_value_heads) *
                                          args.value_dim +
                                      j]
                      : 0.0f;
      }
    }
    float u[4][4] = {}, result[4][4] = {};
    if (has_rows) {
      using Product = TileProduct<Math, Fast::kSum, Fast::kOuter, 4, kHead>;
      Product::run(u, shared.solved_k + row0 * S::kRowStride, S::kRowStride, shared.state + slice0,
                   S::kSliceStride);
      Product::run(result, shared.q + row0 * S::kRowStride, S::kRowStride, shared.state + slice0,
                   S::kSliceStride);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int i = row0 + lane.g + e / 2 * 8, j = slice0 + 8 * n + 2 * lane.t + e % 2;
          u[n][e] = v[n][e] - u[n][e];
          result[n][e] *= shared.from_start[i] * scale;
          shared.u[i * S::kSliceStride + j] = u[n][e];
        }
      }
    }
    __syncthreads();
    if (has_rows) {
      TileProduct<Math, Fast::kSum, Fast::kOuter, 4, kChunk>::run(
          result, shared.ahead + row0 * S::kScoreStride, S::kScoreStride, shared.u + slice0,
          S::kSliceStride);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int i = row0 + lane.g + e / 2 * 8,
                    j = column0 + slice0 + 8 * n + 2 * lane.t + e % 2;
          if (i < chunk.n_rows && j < args.value_dim) {
            out[(first + static_cast<std::int64_t>(i) * args.n_value_heads) * args.value_dim + j] =
                from_float<T>(result[n][e]);
          }
        }
      }
    }
    __syncthreads();  // u has been used as it is
    if (has_rows) {
#pragma unroll
      for (int n = 0; n < 4; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int i = row0 + lane.g + e / 2 * 8, j = slice0 + 8 * n + 2 * lane.t + e % 2;
          shared.u[i * S::kSliceStride + j] = u[n][e] * shared.to_end[i];
        }
      }
    }
    __syncthreads();
    const float decay = shared.from_start[chunk.n_rows - 1];
    for (int tile = warp; tile < kStateTiles; tile += kWarps) {
      const int d0 = tile % (kHead / 16) * 16, s0 = tile / (kHead / 16) * 32;
      float state[4][4];
#pragma unroll
      for (int n = 0; n < 4; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int d = d0 + lane.g + e / 2 * 8, j = s0 + 8 * n + 2 * lane.t + e % 2;
          state[n][e] = shared.state[d * S::kSliceStride + j] * decay;
        }
      }
      TileProduct<Math, Fast::kOuter, Fast::kOuter, 4, kChunk>::run(
          state, shared.k + d0, S::kKeyStride, shared.u + s0, S::kSliceStride);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int d = d0 + lane.g + e / 2 * 8, j = s0 + 8 * n + 2 * lane.t + e % 2;
          shared.state[d * S::kSliceStride + j] = state[n][e];
        }
      }
    }
  }
  if (run.to_slot < 0) return;
  __syncthreads();
  for_state<kHead>(args, run.to_slot, place.head, column0,
                   [&](int from, std::int64_t to, bool there) {
                     if (there) args.states[to] = shared.state[from];
                   });
}

template <typename T, int kHead>
void scan(const DeltaArgs& args, const DeltaRun* runs, std::int64_t n_runs, const T* qkv, T* out,
          StreamHandle stream) {
  constexpr std::size_t kShared = sizeof(ScanShared<kHead>);
  constexpr int kSlice = ScanShape<kHead>::kSlice;
  allow_shared(delta_scan_kernel<T, kHead>, kShared);
  const dim3 grid(static_cast<unsigned>(n_runs), static_cast<unsigned>(args.n_value_heads),
                  static_cast<unsigned>((args.value_dim + kSlice - 1) / kSlice));
  delta_scan_kernel<T, kHead><<<grid, kThreads, kShared, stream>>>(args, runs, qkv, out);
  check_launch("delta_scan");
}

}  // namespace

template <typename T>
void delta_scan(const DeltaArgs& args, const DeltaRun* runs, std::int64_t n_runs, const T* qkv,
                T* out, StreamHandle stream) {
  if (n_runs == 0) return;
  if (is_narrow(args)) {
    scan<T, 32>(args, runs, n_runs, qkv, out, stream);
  } else {
    scan<T, kMaxDeltaHead>(args, runs, n_runs, qkv, out, stream);
  }
}

template void delta_scan(const DeltaArgs&, const DeltaRun*, std::int64_t, const float*, float*,
                         StreamHandle);
template void delta_scan(const DeltaArgs&, const DeltaRun*, std::int64_t, const __nv_bfloat16*,
                         __nv_bfloat16*, StreamHandle);

}  // namespace jemm::gpu

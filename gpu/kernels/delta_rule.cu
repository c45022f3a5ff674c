// The gated delta rule in chunks of 64 rows: what does not need the state, then what does.
//
// prepare: one block a (chunk, value head), all at once. Scores k k^T and q k^T, decays, and the
//   triangular system solved for every column of [V | K] by forward substitution, a column a thread:
//   its unknowns in shared memory, 16 of them at a time in registers.
// scan: one block a (run, value head, slice of Dv), chunk after chunk with the slice of the state
//   [Dk, kSlice] in shared memory; the next chunk is read while one is computed. Per chunk and head 64 Dk (4 Dv) + 64 64 2 Dv operations.
// Heads are padded with zeros to kHead. All sums are FP32 but for the decays' logarithms.
#include "gpu/cuda.h"
#include "gpu/kernels/kernels.h"
#include "gpu/kernels/tile_product.cuh"

namespace jemm::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kChunk = kDeltaChunk;

template <typename T>
struct MathOf {
  using Type = Fp32Math;
};
template <>
struct MathOf<__nv_bfloat16> {
  using Type = Tf32Math;
};

// Where the operands of a value head stand.
struct HeadPlace {
  __device__ HeadPlace(const DeltaArgs& args, int h)
      : head(h),
        key_width(args.n_key_heads * args.key_dim),
        stride(2 * key_width + args.n_value_heads * args.value_dim),
        q(h / (args.n_value_heads / args.n_key_heads) * args.key_dim),
        k(key_width + q),
        v(2 * key_width + h * args.value_dim) {}
  int head, key_width;
  std::int64_t stride;  // of a row of qkv
  int q, k, v;          // offsets in it
};

// log(1 + exp(x)), as PyTorch computes it.
__device__ float softplus(float x) {
  return x > 20.0f ? x : log1pf(expf(x));
}

// [64, kHead] of a chunk on the way to shared memory as floats, zeros where there are none. Where
// rows are whole and aligned, fetch() reads 16 bytes a thread and load into registers, so that
// memory is read ahead of the use; otherwise store() reads the elements one by one.
template <int kHead, typename From>
class Rows {
 public:
  __device__ void fetch(const From* from, std::int64_t stride, int n_rows, int width) {
    from_ = from;
    stride_ = stride;
    n_rows_ = n_rows;
    width_ = width;
    whole_ = width == kHead && stride % kVector == 0 &&
             reinterpret_cast<std::uintptr_t>(from) % 16 == 0;
    if (!whole_) return;
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const int row = place(e) / kRowVectors, column = place(e) % kRowVectors * kVector;
      values_[e] = row < n_rows ? *reinterpret_cast<const uint4*>(from + row * stride + column)
                                : make_uint4(0, 0, 0, 0);
    }
  }

  __device__ void store(float* to, int to_stride) const {
    if (whole_) {
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        const int row = place(e) / kRowVectors, column = place(e) % kRowVectors * kVector;
        const auto* elements = reinterpret_cast<const From*>(&values_[e]);
        float* target = to + row * to_stride + column;
#pragma unroll
        for (int j = 0; j < kVector; j += 4) {
          *reinterpret_cast<float4*>(target + j) =
              make_float4(to_float(elements[j]), to_float(elements[j + 1]),
                          to_float(elements[j + 2]), to_float(elements[j + 3]));
        }
      }
      return;
    }
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < kChunk * kHead; i += kThreads) {
      const int row = i / kHead, column = i % kHead;
      const bool there = row < n_rows_ && column < width_;
      to[row * to_stride + column] = there ? to_float(from_[row * stride_ + column]) : 0.0f;
    }
  }

 private:
  static constexpr int kVector = 16 / sizeof(From);
  static constexpr int kRowVectors = kHead / kVector;
  static constexpr int kEach = kChunk * kRowVectors / kThreads;
  static_assert(kEach >= 1);

  __device__ static int place(int e) { return static_cast<int>(threadIdx.x) + e * kThreads; }

  const From* from_ = nullptr;
  std::int64_t stride_ = 0;
  int n_rows_ = 0, width_ = 0;
  bool whole_ = false;
  uint4 values_[kEach];
};

template <int kHead>
struct PrepareShared {
  static constexpr int kStride = kHead + 4;
  static constexpr int kScoreStride = kChunk + 4;
  alignas(16) float q[kChunk * kStride];
  alignas(16) float k[kChunk * kStride];
  alignas(16) float below[kChunk * kScoreStride];  // transposed
  double cumulated[kChunk];
  float log_decay[kChunk], beta[kChunk], from_start[kChunk];
};

// Fills cumulated, beta and from_start, and writes the decays.
template <typename T, typename S>
__device__ void load_gates(const DeltaArgs& args, const DeltaChunk& chunk, int head, const T* a,
                           const T* b, S& shared) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < kChunk) {
    const bool there = i < chunk.n_rows;
    const std::int64_t at = (chunk.row_begin + (there ? i : 0)) * args.gate_stride + head;
    shared.log_decay[i] =
        there ? -args.decay[head] * softplus(to_float(a[at]) + args.time_bias[head]) : 0.0f;
    shared.beta[i] = there ? sigmoid(to_float(b[at])) : 0.0f;
  }
  __syncthreads();
  if (i < 32) {  // two rows a lane
    const auto first = static_cast<double>(shared.log_decay[2 * i]);
    double sum = first + static_cast<double>(shared.log_decay[2 * i + 1]);
    for (int step = 1; step < 32; step *= 2) {
      const double before = __shfl_up_sync(0xffffffffU, sum, static_cast<unsigned>(step));
      if (i >= step) sum += before;
    }
    const double before = __shfl_up_sync(0xffffffffU, sum, 1);
    shared.cumulated[2 * i] = i == 0 ? first : before + first;
    shared.cumulated[2 * i + 1] = sum;
  }
  __syncthreads();
  if (i < kChunk) {
    shared.from_start[i] = expf(static_cast<float>(shared.cumulated[i]));
    if (i < chunk.n_rows) {
      float* decays = args.decays +
                      (static_cast<std::int64_t>(chunk.row_begin + i) * args.n_value_heads + head) * 2;
      decays[0] = shared.from_start[i];
      decays[1] = expf(static_cast<float>(shared.cumulated[kChunk - 1] - shared.cumulated[i]));
    }
  }
  __syncthreads();
}

constexpr int kSolved = 16;  // unknowns in registers

// x[i] = beta_i v_i of one column; 0 where there is no row.
template <typename T>
__device__ void load_values(const T* v, std::int64_t stride, int n_rows, const float* beta, float* x,
                            int x_stride) {
  for (int begin = 0; begin < kChunk; begin += kSolved) {
    float values[kSolved];
#pragma unroll
    for (int i = 0; i < kSolved; ++i) values[i] = to_float(v[min(begin + i, n_rows - 1) * stride]);
#pragma unroll
    for (int i = 0; i < kSolved; ++i) x[(begin + i) * x_stride] = values[i] * beta[begin + i];
  }
}

// Solves (I + below) x = x in place for one column; `below` [64, 64] transposed, stride kBelow.
template <int kStride, int kBelow>
__device__ void solve_column(const float* below, float* x) {
  for (int begin = 0; begin < kChunk; begin += kSolved) {
    float own[kSolved];
#pragma unroll
    for (int i = 0; i < kSolved; ++i) own[i] = x[(begin + i) * kStride];
#pragma unroll 4
    for (int j = 0; j < begin; ++j) {
      const float known = x[j * kStride];
      const float* factors = below + j * kBelow + begin;
#pragma unroll
      for (int i = 0; i < kSolved; ++i) own[i] -= factors[i] * known;
    }
#pragma unroll
    for (int j = 0; j < kSolved; ++j) {
      const float* factors = below + (begin + j) * kBelow + begin;
#pragma unroll
      for (int i = j + 1; i < kSolved; ++i) own[i] -= factors[i] * own[j];
    }
#pragma unroll
    for (int i = 0; i < kSolved; ++i) x[(begin + i) * kStride] = own[i];
  }
}

template <typename T, int kHead>
__global__ void __launch_bounds__(kThreads, 2)
    delta_prepare_kernel(DeltaArgs args, const T* qkv, const T* a, const T* b) {
  using Math = typename MathOf<T>::Type;
  using S = PrepareShared<kHead>;
  extern __shared__ uint4 memory[];
  S& shared = *reinterpret_cast<S*>(memory);
  const DeltaChunk chunk = args.chunks[blockIdx.x];
  const HeadPlace place(args, static_cast<int>(blockIdx.y));
  const T* rows = qkv + chunk.row_begin * place.stride;
  Rows<kHead, T> q, k;
  q.fetch(rows + place.q, place.stride, chunk.n_rows, args.key_dim);
  k.fetch(rows + place.k, place.stride, chunk.n_rows, args.key_dim);
  q.store(shared.q, S::kStride);
  k.store(shared.k, S::kStride);
  load_gates(args, chunk, place.head, a, b, shared);

  // Scores: a warp takes 16 rows and 32 columns of both.
  const int warp = static_cast<int>(threadIdx.x) / 32, row0 = warp % 4 * 16, column0 = warp / 4 * 32;
  const Lane lane;
  float ahead[4][4] = {}, below[4][4] = {};
  using Product = TileProduct<Math, Fast::kSum, Fast::kSum, 4, kHead>;
  Product::run(ahead, shared.q + row0 * S::kStride, S::kStride, shared.k + column0 * S::kStride,
               S::kStride);
  Product::run(below, shared.k + row0 * S::kStride, S::kStride, shared.k + column0 * S::kStride,
               S::kStride);
  const float scale = 1.0f / sqrtf(static_cast<float>(args.key_dim));
#pragma unroll
  for (int n = 0; n < 4; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int i = row0 + lane.g + e / 2 * 8, j = column0 + 8 * n + 2 * lane.t + e % 2;
      const float decay =
          j <= i ? expf(static_cast<float>(shared.cumulated[i] - shared.cumulated[j])) : 0.0f;
      shared.below[j * S::kScoreStride + i] = j < i ? below[n][e] * decay * shared.beta[i] : 0.0f;
      if (i < chunk.n_rows) {
        const std::int64_t at = static_cast<std::int64_t>(chunk.row_begin + i) * args.n_value_heads;
        args.ahead[(at + place.head) * kChunk + j] = ahead[n][e] * decay * scale;
      }
    }
  }
  __syncthreads();

  // (I + below) x = right side, a column of [V | K] a thread. q and k have been used: their columns
  // hold the unknowns.
  for (int column = static_cast<int>(threadIdx.x); column < 2 * kHead; column += kThreads) {
    const bool is_value = column < kHead;
    const int c = is_value ? column : column - kHead;
    const int width = is_value ? args.value_dim : args.key_dim;
    if (c >= width) continue;
    float* x = (is_value ? shared.q : shared.k) + c;
    if (is_value) {
      load_values(rows + place.v + c, place.stride, chunk.n_rows, shared.beta, x, S::kStride);
    } else {
      for (int i = 0; i < kChunk; ++i) x[i * S::kStride] *= shared.from_start[i] * shared.beta[i];
    }
    solve_column<S::kStride, S::kScoreStride>(shared.below, x);
    float* solved = (is_value ? args.solved_v : args.solved_k) +
                    (static_cast<std::int64_t>(chunk.row_begin) * args.n_value_heads + place.head) * width + c;
    const std::int64_t step = static_cast<std::int64_t>(args.n_value_heads) * width;
    for (int i = 0; i < chunk.n_rows; ++i) solved[i * step] = x[i * S::kStride];
  }
}

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
__device__ void for_state(const DeltaArgs& args, int slot, int head, int column0, const Move& move) {
  using S = ScanShared<kHead>;
  const std::int64_t begin = (static_cast<std::int64_t>(slot) * args.n_value_heads + head) *
                             args.key_dim * args.value_dim;
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
    const std::int64_t at = static_cast<std::int64_t>(next.row_begin) * args.n_value_heads + place.head;
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
    const std::int64_t first = static_cast<std::int64_t>(chunk.row_begin) * args.n_value_heads + place.head;
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
        v[n][e] = there ? args.solved_v[(first + static_cast<std::int64_t>(i) * args.n_value_heads) *
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
          const int i = row0 + lane.g + e / 2 * 8, j = column0 + slice0 + 8 * n + 2 * lane.t + e % 2;
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

template <typename Kernel>
void allow_shared(Kernel* kernel, std::size_t bytes) {
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(bytes)),
             "delta_rule");
}

template <typename T, int kHead>
void prepare(const DeltaArgs& args, std::int64_t n_chunks, const T* qkv, const T* a, const T* b,
             StreamHandle stream) {
  constexpr std::size_t kShared = sizeof(PrepareShared<kHead>);
  allow_shared(delta_prepare_kernel<T, kHead>, kShared);
  const dim3 grid(static_cast<unsigned>(n_chunks), static_cast<unsigned>(args.n_value_heads));
  delta_prepare_kernel<T, kHead><<<grid, kThreads, kShared, stream>>>(args, qkv, a, b);
  check_launch("delta_prepare");
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

bool is_narrow(const DeltaArgs& args) {
  check_limit("a delta-rule key's width", args.key_dim, kMaxDeltaHead);
  check_limit("a delta-rule value's width", args.value_dim, kMaxDeltaHead);
  return args.key_dim <= 32 && args.value_dim <= 32;
}

}  // namespace

template <typename T>
void delta_prepare(const DeltaArgs& args, std::int64_t n_chunks, const T* qkv, const T* a,
                   const T* b, StreamHandle stream) {
  if (n_chunks == 0) return;
  if (is_narrow(args)) {
    prepare<T, 32>(args, n_chunks, qkv, a, b, stream);
  } else {
    prepare<T, kMaxDeltaHead>(args, n_chunks, qkv, a, b, stream);
  }
}

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

#define JEMM_INSTANTIATE(T)                                                                       \
  template void delta_prepare(const DeltaArgs&, std::int64_t, const T*, const T*, const T*,       \
                              StreamHandle);                                                      \
  template void delta_scan(const DeltaArgs&, const DeltaRun*, std::int64_t, const T*, T*,         \
                           StreamHandle);
JEMM_INSTANTIATE(float)
JEMM_INSTANTIATE(__nv_bfloat16)
#undef JEMM_INSTANTIATE

}  // namespace jemm::gpu

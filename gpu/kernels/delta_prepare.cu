// The gated delta rule, chunk by chunk: what does not need the state.
//
// One block a (chunk of 64 rows, value head), all at once: scores k k^T and q k^T, decays, and the
// triangular system solved for every column of [V | K] by forward substitution, a column a thread:
// its unknowns in shared memory, 16 of them at a time in registers. Heads are padded with zeros to
// kHead. All sums are FP32 but for the decays' logarithms, which are summed in double.
#include "gpu/kernels/delta_rule.cuh"

namespace jemm::gpu {
namespace {

using namespace delta;

// log(1 + exp(x)), as PyTorch computes it.
__device__ float softplus(float x) {
  return x > 20.0f ? x : log1pf(expf(x));
}

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
      float* decays =
          args.decays +
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
__device__ void load_values(const T* v, std::int64_t stride, int n_rows, const float* beta,
                            float* x, int x_stride) {
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
  const int warp = static_cast<int>(threadIdx.x) / 32, row0 = warp % 4 * 16,
            column0 = warp / 4 * 32;
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
    float* solved =
        (is_value ? args.solved_v : args.solved_k) +
        (static_cast<std::int64_t>(chunk.row_begin) * args.n_value_heads + place.head) * width + c;
    const std::int64_t step = static_cast<std::int64_t>(args.n_value_heads) * width;
    for (int i = 0; i < chunk.n_rows; ++i) solved[i * step] = x[i * S::kStride];
  }
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

template void delta_prepare(const DeltaArgs&, std::int64_t, const float*, const float*,
                            const float*, StreamHandle);
template void delta_prepare(const DeltaArgs&, std::int64_t, const __nv_bfloat16*,
                            const __nv_bfloat16*, const __nv_bfloat16*, StreamHandle);

}  // namespace jemm::gpu

// The gated delta rule in BF16, chunk by chunk: what does not need the state.
//
// One block a (chunk of 64 rows, value head), all at once. Four warps score q against k, four k
// against k, each 16 rows; the latter make the triangular system I + M and invert its blocks of 16
// by substitution in FP32. Blocks grow to 32, then 64, by products: the corner C of [[A, 0],
// [C, B]] becomes -B^-1 C A^-1, in TF32. The inverse, scaled by columns and rounded to BF16, times
// V and K gives V' and K'. Sums are FP32 but for the decays' logarithms, which are summed in
// double. Work: up to 64 64 (6 Dk + 2 Dv) operations, blocks above the diagonal being left out; 48
// KB read, 40 KB written.
#include "gpu/kernels/delta_bf16.cuh"
#include "gpu/kernels/launch.cuh"

namespace jemm::gpu {
namespace {

using namespace delta;

constexpr int kBlock = 16;  // rows of a warp, and of a block on the diagonal

struct Shared {
  static constexpr int kStride = kHead + 8;
  static constexpr int kSystemStride = kChunk + 4;
  alignas(16) bf16 q[kChunk * kStride];
  alignas(16) bf16 k[kChunk * kStride];
  alignas(16) bf16 v[kChunk * kStride];
  // M, then (I + M)^-1. Rows 0 to 31 of columns 32 to 63 hold intermediate products.
  alignas(16) float system[kChunk * kSystemStride];
  Gates gates;
};
static_assert(sizeof(Shared) <= delta_shared_bytes(sizeof(bf16)));
constexpr int kSystem = Shared::kSystemStride;

// A tile of accumulators to shared memory.
__device__ void store_floats(const float (&tile)[4], float sign, float* to) {
  const Lane lane;
  float* p = to + lane.g * kSystem + 2 * lane.t;
  store_pair(p, {sign * tile[0], sign * tile[1]});
  store_pair(p + 8 * kSystem, {sign * tile[2], sign * tile[3]});
}

// block = (I + block)^-1 for a block of 16 rows that is zero on and above its diagonal; a column a
// lane, the upper lanes doing what the lower ones do.
__device__ void invert_block(float* block) {
  const int column = static_cast<int>(threadIdx.x) % kBlock;
  float x[kBlock];
#pragma unroll
  for (int i = 0; i < kBlock; ++i) {
    x[i] = i == column ? 1.0f : 0.0f;
#pragma unroll
    for (int j = 0; j < i; j += 4) {
      const float4 factors = *reinterpret_cast<const float4*>(block + i * kSystem + j);
      x[i] -= factors.x * x[j];
      if (j + 1 < i) x[i] -= factors.y * x[j + 1];
      if (j + 2 < i) x[i] -= factors.z * x[j + 2];
      if (j + 3 < i) x[i] -= factors.w * x[j + 3];
    }
  }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < kBlock; ++i) block[i * kSystem + column] = x[i];
}

// The corner below and left of two inverses of kSize rows that meet on the diagonal, the first from
// row `begin` on. A warp that takes part does 16 rows and 8 columns; all pass two barriers.
template <int kSize>
__device__ void merge(float* system, int begin, int row, int column, bool takes_part) {
  using Product = TileProduct<Tf32Math, Fast::kSum, Fast::kOuter, 1, kSize>;
  float* corner = system + (begin + kSize) * kSystem + begin;
  float* between = system + begin / 2 * kSystem + 32;
  if (takes_part) {
    float tile[1][4] = {};
    Product::run(tile, corner + row * kSystem, kSystem, system + begin * (kSystem + 1) + column,
                 kSystem);
    store_floats(tile[0], 1.0f, between + row * kSystem + column);
  }
  __syncthreads();
  if (takes_part) {
    float tile[1][4] = {};
    Product::run(tile, system + (begin + kSize) * (kSystem + 1) + row * kSystem, kSystem,
                 between + column, kSystem);
    store_floats(tile[0], -1.0f, corner + row * kSystem + column);
  }
  __syncthreads();
}

// Two tiles' worth of the inverse's columns from j0 on, scaled, as a left operand.
__device__ void load_operand(const float* rows, const float* factors, int j0,
                             std::uint32_t (&operand)[4]) {
  const Lane lane;
#pragma unroll
  for (int side = 0; side < 2; ++side) {
    const int j = j0 + 8 * side + 2 * lane.t;
    const float2 factor = load_pair(factors + j);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float2 x = load_pair(rows + (lane.g + 8 * half) * kSystem + j);
      operand[2 * side + half] = pack_pair(x.x * factor.x, x.y * factor.y);
    }
  }
}

// Accumulators [16, 8 kTiles], rounded, to rows of shared memory.
template <int kTiles>
__device__ void store_rounded(const float (&tiles)[kTiles][4], bf16* to) {
  const Lane lane;
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
    bf16* p = to + lane.g * Shared::kStride + 8 * n + 2 * lane.t;
    store_pair(p, {tiles[n][0], tiles[n][1]});
    store_pair(p + 8 * Shared::kStride, {tiles[n][2], tiles[n][3]});
  }
  __syncwarp();
}

__global__ void __launch_bounds__(kThreads, 3)
    delta_prepare_kernel(DeltaArgs<bf16> args, const bf16* qkv, const bf16* a, const bf16* b) {
  extern __shared__ uint4 memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory);
  wait_for_work_before();
  const DeltaChunk chunk = args.chunks[blockIdx.x];
  const int head = static_cast<int>(blockIdx.z * gridDim.y + blockIdx.y);
  const HeadPlace place(args, head, static_cast<int>(blockIdx.z));
  const Lane lane;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const bool keys = warp >= 4;  // k k^T, then K'; the other warps q k^T, then V'
  // Later rows have more to do: a scheduler of the multiprocessor gets early and late ones. The
  // first warp has the gates to compute as well.
  const int row0 = (keys ? 7 - warp : warp) * kBlock;
  const int n_heads = args.n_value_heads;
  const std::int64_t first =
      static_cast<std::int64_t>(chunk.row_begin + row0) * n_heads + head;  // of the warp's rows

  GateInputs<bf16> gate_inputs;
  if (warp == 0) gate_inputs = read_gates(args, chunk, head, a, b);
  const bf16* rows = qkv + chunk.row_begin * place.stride;
  const auto copy = [&](int from, int width, bf16* to) {
    copy_tile<kHead, kThreads>(rows + from, static_cast<int>(place.stride), chunk.n_rows, width, to,
                               Shared::kStride, thread);
  };
  copy(place.q, args.key_dim, shared.q);
  copy(place.k, args.key_dim, shared.k);
  commit_copies();
  copy(place.v, args.value_dim, shared.v);
  commit_copies();
  wait_copies<1>();
  __syncthreads();
  if (warp == 0) fill_gates(args, chunk, head, gate_inputs, shared.gates);

  // Blocks of 16 columns up to the diagonal.
  float scores[kChunk / 8][4] = {};
  const bf16* left =
      (keys ? shared.k : shared.q) + (row0 + thread % 16) * Shared::kStride + thread % 32 / 16 * 8;
  const bf16* right = shared.k + lane_offset<Fast::kSum>(Shared::kStride);
#pragma unroll 2
  for (int d = 0; d < kHead; d += 16) {
    std::uint32_t operand[4];
    load_matrices(operand, left + d);
#pragma unroll
    for (int j = 0; j < kChunk; j += kBlock) {
      if (j <= row0) {
        multiply<Fast::kSum>(scores[j / 8], scores[j / 8 + 1], operand,
                             right + j * Shared::kStride + d);
      }
    }
  }
  __syncthreads();  // the gates are there
  const Gates& gates = shared.gates;
  const float scale = 1.0f / sqrtf(static_cast<float>(args.key_dim));
  const int i[2] = {row0 + lane.g, row0 + lane.g + 8};
  const float2 c_i[2] = {gates.cumulated[i[0]], gates.cumulated[i[1]]};
  const float factor[2] = {keys ? gates.beta[i[0]] : scale, keys ? gates.beta[i[1]] : scale};
#pragma unroll
  for (int n = 0; n < kChunk / 8; ++n) {
    if (8 * n >= row0 + kBlock) break;
    const int j = 8 * n + 2 * lane.t;
    const float4 c_j = *reinterpret_cast<const float4*>(&gates.cumulated[j]);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float between =
          difference(c_i[e / 2], e % 2 == 0 ? float2{c_j.x, c_j.y} : float2{c_j.z, c_j.w});
      const float x = scores[n][e] * (factor[e / 2] * power_of_two(between));
      scores[n][e] = j + e % 2 < i[e / 2] + (keys ? 0 : 1) ? x : 0.0f;
    }
  }
  if (keys) {
#pragma unroll
    for (int n = 0; n < kChunk / 8; ++n) {  // as far as a block of 32 goes
      if (8 * n < row0 / 32 * 32 + 32) {
        store_floats(scores[n], 1.0f, shared.system + row0 * kSystem + 8 * n);
      }
    }
    __syncwarp();
    invert_block(shared.system + row0 * (kSystem + 1));
  } else {  // the warp alone reads its rows of q
    bf16* own = shared.q + row0 * Shared::kStride;
    __syncwarp();
    store_rounded(scores, own);
    store_tile<kBlock, kChunk>(own, Shared::kStride, chunk.n_rows - row0, row0 + kBlock,
                               args.ahead + first * kChunk, n_heads * kChunk);
  }
  wait_copies<0>();
  __syncthreads();
  merge<16>(shared.system, warp / 2 % 2 * 32, 0, warp % 2 * 8, warp < 4);
  merge<32>(shared.system, 0, warp % 2 * 16, warp / 2 * 8, true);

  bf16* sides = keys ? shared.k : shared.v;
  bf16* own = sides + row0 * Shared::kStride;
  constexpr int kHalf = kHead / 2;  // of the columns: its accumulators leave room for three blocks
#pragma unroll 1
  for (int column = 0; column < kHead; column += kHalf) {
    float solved[kHalf / 8][4] = {};
    for (int j = 0; j <= row0; j += kBlock) {
      std::uint32_t operand[4];
      load_operand(shared.system + row0 * kSystem, keys ? gates.key_factor : gates.beta, j,
                   operand);
      const bf16* from =
          sides + j * Shared::kStride + column + lane_offset<Fast::kOuter>(Shared::kStride);
#pragma unroll
      for (int n = 0; n < kHalf / 8; n += 2) {
        multiply<Fast::kOuter>(solved[n], solved[n + 1], operand, from + 8 * n);
      }
    }
    __syncthreads();  // these columns of k and v have been used
    store_rounded(solved, own + column);
  }
  const int width = keys ? args.key_dim : args.value_dim;
  store_tile<kBlock, kHead>(own, Shared::kStride, chunk.n_rows - row0, width,
                            (keys ? args.solved_k : args.solved_v) + first * width,
                            n_heads * width);
}

}  // namespace

void delta_prepare(const DeltaArgs<bf16>& args, std::int64_t n_chunks, const bf16* qkv,
                   const bf16* a, const bf16* b, StreamHandle stream) {
  if (n_chunks == 0) return;
  check_heads(args);
  constexpr std::size_t kShared = sizeof(Shared);
  allow_shared(delta_prepare_kernel, kShared, "delta_prepare");
  const dim3 grid(static_cast<unsigned>(n_chunks),
                  static_cast<unsigned>(args.n_value_heads / args.n_key_heads),
                  static_cast<unsigned>(args.n_key_heads));
  launch("delta_prepare", delta_prepare_kernel,
         {.grid = grid, .n_threads = kThreads, .n_shared = kShared}, stream, args, qkv, a, b);
}

}  // namespace jemm::gpu

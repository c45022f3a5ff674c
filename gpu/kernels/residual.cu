// The residual stream: a block's output added, then the norm that the next block reads.
//
// Warps take 8 rows and 32 columns at a time: lane 4 g + t has rows 2 t and 2 t + 1 of columns 4 g,
// ..., 4 g + 3. Bound by the bytes of x, y and the normed rows.
//
// BF16 up to rank 16 and 5,120 columns, as of sm_90: 8 blocks of a cluster share the rows, so that
// few rows still occupy the device and small blocks fill each other's pauses. A lane reads all it
// needs before it awaits anything, the matrix unit makes the updates, the sums stay in registers,
// and each block sends its part of the sums of squares to all of the cluster. Everything else: a
// block has whole rows, multiplies and adds, and reads what it stored again for the norm.
//
// What a row gives depends neither on the other rows nor on its place among them.
#include "gpu/cuda.h"
#include "gpu/kernels/device.cuh"
#include "gpu/kernels/kernels.h"
#include "gpu/kernels/launch.cuh"
#include "gpu/kernels/tile_product.cuh"

namespace jemm::gpu {
namespace {

using bf16 = __nv_bfloat16;

constexpr int kTileRows = 8, kGroupColumns = 32;
constexpr int kPlainWarps = 16;

constexpr int kBlocks = 8;  // of a cluster; all devices that have clusters take so many
constexpr int kWarps = 10;  // of a block
constexpr int kGroups = 2;  // of a warp
constexpr int kBlockColumns = kWarps * kGroups * kGroupColumns;
constexpr int kMaxRank = 16;  // one step of the matrix unit

template <typename T, typename Out>
struct Residual {
  const T* y = nullptr;  // its stride is the update's
  const float* factor = nullptr;
  float* x = nullptr;
  Out* normed = nullptr;
  std::int64_t n_rows = 0;
  int width = 0;
  float eps = 0;
};

// Of 4 neighbours the first n, zeros behind. If they move at once, n is a multiple of 4.
template <bool kAtOnce, typename T>
__device__ Pack<T, 4> load_four(const T* from, int n) {
  Pack<T, 4> four = {};
  if constexpr (kAtOnce) {
    if (n > 0) four = load_pack<T, 4>(from);
  } else {
    for (int c = 0; c < 4; ++c) {
      if (c < n) four.at[c] = from[c];
    }
  }
  return four;
}
template <bool kAtOnce, typename T>
__device__ void store_four(T* to, const Pack<T, 4>& four, int n) {
  if constexpr (kAtOnce) {
    if (n > 0) store_pack(to, four);
  } else {
    for (int c = 0; c < 4; ++c) {
      if (c < n) to[c] = four.at[c];
    }
  }
}

// A lane's two rows. `at`: the first of its 4 columns.
template <bool kAtOnce, typename T, typename Out>
struct TwoRows {
  const Residual<T, Out>& target;
  std::int64_t rows[2];
  int width[2];  // 0: no such row

  __device__ explicit TwoRows(const Residual<T, Out>& of) : target(of) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      rows[i] = static_cast<std::int64_t>(blockIdx.x) * kTileRows + 2 * Lane().t + i;
      width[i] = rows[i] < target.n_rows ? target.width : 0;
    }
  }

  template <typename Value>
  __device__ void load(const Value* from, std::int64_t stride, int at, Pack<Value, 4> (&to)[2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      to[i] = load_four<kAtOnce>(from + rows[i] * stride + at, width[i] - at);
    }
  }
  template <typename Value>
  __device__ void store(Value* to, int at, const Pack<Value, 4> (&from)[2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      store_four<kAtOnce>(to + rows[i] * target.width + at, from[i], width[i] - at);
    }
  }

  /// x += outputs, stored; squares += x^2.
  __device__ void add(int at, const float (&sums)[2][4], Pack<float, 4> (&x)[2],
                      float (&squares)[2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        float& value = x[i].at[c];
        value += sums[i][c];
        squares[i] += value * value;
      }
    }
    store(target.x, at, x);
  }

  /// The norm's factors.
  __device__ Pack<float, 4> factors(int at) {
    return load_four<kAtOnce>(target.factor + at, target.width - at);
  }

  /// normed = x inverse factors.
  __device__ void norm(int at, const Pack<float, 4> (&x)[2], const float (&inverse)[2],
                       const Pack<float, 4>& factors) {
    Pack<Out, 4> normed[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        normed[i].at[c] = from_float<Out>(x[i].at[c] * inverse[i] * factors.at[c]);
      }
    }
    store(target.normed, at, normed);
  }
};

// parts[warp][row] = the warp's sums, of its lanes' squares. The block has to synchronize then.
__device__ void put_squares(const float (&squares)[2], float (*parts)[kTileRows]) {
  const Lane lane;
  float2 sum = {squares[0], squares[1]};
#pragma unroll
  for (int offset = 4; offset < 32; offset *= 2) {
    sum.x += __shfl_xor_sync(0xffffffffU, sum.x, offset);
    sum.y += __shfl_xor_sync(0xffffffffU, sum.y, offset);
  }
  if (lane.g == 0) store_pair(&parts[threadIdx.x / 32][2 * lane.t], sum);
}

// 1 / sqrt(mean(x^2) + eps) of a lane's two rows, from parts of the sums of squares.
template <int kParts>
__device__ void inverse_norms(const float (&parts)[kParts][kTileRows], int width, float eps,
                              float (&inverse)[2]) {
  float2 sum = {};
#pragma unroll
  for (const auto& part : parts) {
    const float2 pair = load_pair(&part[2 * Lane().t]);
    sum.x += pair.x, sum.y += pair.y;
  }
  inverse[0] = 1.0f / sqrtf(sum.x / static_cast<float>(width) + eps);
  inverse[1] = 1.0f / sqrtf(sum.y / static_cast<float>(width) + eps);
}

template <bool kAtOnce, typename T, typename Out>
__global__ void __launch_bounds__(kPlainWarps * 32)
    plain_kernel(LowRank<T> update, Residual<T, Out> target) {
  __shared__ float parts[kPlainWarps][kTileRows];
  const int first = static_cast<int>(threadIdx.x) / 32 * kGroupColumns + 4 * Lane().g;
  constexpr int kStep = kPlainWarps * kGroupColumns;
  TwoRows<kAtOnce, T, Out> two(target);
  wait_for_work_before();
  const T* low[2];
  for (int i = 0; i < 2; ++i) {
    low[i] = update.low + min(two.rows[i], target.n_rows - 1) * update.stride;
  }
  Pack<float, 4> x[2];
  float squares[2] = {};
  for (int at = first; at < target.width; at += kStep) {
    Pack<T, 4> y[2];
    two.load(target.x, target.width, at, x);
    two.load(target.y, update.stride, at, y);
    float sums[2][4];
    for (int i = 0; i < 2; ++i)
      for (int c = 0; c < 4; ++c) sums[i][c] = to_float(y[i].at[c]);
#pragma unroll 4
    for (int j = 0; j < update.rank; ++j) {
      const auto b = load_four<kAtOnce>(update.b + j * update.b_stride + at, target.width - at);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float term = to_float(low[i][j]);
#pragma unroll
        for (int c = 0; c < 4; ++c) sums[i][c] += term * to_float(b.at[c]);
      }
    }
    two.add(at, sums, x, squares);
  }
  put_squares(squares, parts);
  __syncthreads();
  float inverse[2];
  inverse_norms(parts, target.width, target.eps, inverse);
  for (int at = first; at < target.width; at += kStep) {
    two.load(target.x, target.width, at, x);
    two.norm(at, x, inverse, two.factors(at));
  }
}

// Device code before sm_90 is compiled without a body where it needs clusters.
#if __CUDA_ARCH__ >= 900
#define JEMM_HAS_CLUSTERS 1
#endif

#ifdef JEMM_HAS_CLUSTERS

// Updates by the matrix unit: the 16 rows of its product are columns, its 8 columns are rows. Of a
// group's tile p, rows g and g + 8 stand for columns 4 g + 2 p and the next, and terms 2 t, 2 t +
// 1, 2 t + 8, 2 t + 9 of the sum for 4 t, ..., 4 t + 3: all reads are 8 bytes wide so.
struct Update {
  uint2 factors[kGroups][4];  // of each term, 4 columns
  uint2 low;                  // the terms of row g

  __device__ void read_factors(const LowRank<bf16>& update, int first, int width) {
    const Lane lane;
    const bool has_terms = 4 * lane.t < update.rank;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      const int at = first + group * kGroupColumns;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        factors[group][i] = {};
        if (has_terms && at < width) {
          factors[group][i] =
              *reinterpret_cast<const uint2*>(update.b + (4 * lane.t + i) * update.b_stride + at);
        }
      }
    }
  }
  __device__ void read_low(const LowRank<bf16>& update, std::int64_t n_rows) {
    const Lane lane;
    const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kTileRows + lane.g;
    low = {};
    if (4 * lane.t < update.rank && row < n_rows) {
      low = *reinterpret_cast<const uint2*>(update.low + row * update.stride + 4 * lane.t);
    }
  }

  /// sums += the update of a lane's rows in a group.
  __device__ void sum(int group, float (&sums)[2][4]) const {
#pragma unroll
    for (int p = 0; p < 2; ++p) {
      std::uint32_t pairs[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) pairs[i] = p == 0 ? factors[group][i].x : factors[group][i].y;
      const std::uint32_t a[4] = {
          __byte_perm(pairs[0], pairs[1], 0x5410), __byte_perm(pairs[0], pairs[1], 0x7632),
          __byte_perm(pairs[2], pairs[3], 0x5410), __byte_perm(pairs[2], pairs[3], 0x7632)};
      float c[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) c[i] = sums[i % 2][2 * p + i / 2];
      mma_bf16(c, a, low.x, low.y);
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[i % 2][2 * p + i / 2] = c[i];
    }
  }
};

// The parts of a tile's sums of squares, from all blocks of a cluster, and the barrier in shared
// memory that counts their bytes.
struct ClusterParts {
  std::uint64_t barrier;
  float parts[kBlocks][kTileRows];

  /// By one thread, before it arrives at the cluster's barrier.
  __device__ void init() {
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], 1;\n"
        "fence.mbarrier_init.release.cluster;\n"
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)),
        "n"(sizeof parts)
        : "memory");
  }
  /// parts[from][row] of block `to` = sum, in the background.
  __device__ void send(int to, int from, int row, float sum) {
    asm volatile(
        "{.reg .b32 part, counter;\n"
        "mapa.shared::cluster.u32 part, %0, %2;\n"
        "mapa.shared::cluster.u32 counter, %1, %2;\n"
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [part], %3, [counter];}" ::"r"(
            shared_address(&parts[from][row])),
        "r"(shared_address(&barrier)), "r"(to), "r"(__float_as_uint(sum))
        : "memory");
  }
  /// Until all have come.
  __device__ void wait() {
    asm volatile(
        "{.reg .pred ended;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 ended, [%0], 0;\n"
        "@!ended bra again;}" ::"r"(shared_address(&barrier))
        : "memory");
  }
};

#endif

template <typename Out>
__global__ void __launch_bounds__(kWarps * 32)
    cluster_kernel(LowRank<bf16> update, Residual<bf16, Out> target) {
#ifdef JEMM_HAS_CLUSTERS
  __shared__ float own[kWarps][kTileRows];
  __shared__ ClusterParts all;
  const int thread = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.y);
  if (thread == 0) all.init();
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  read_ahead(update.ahead);

  const int first = block * kBlockColumns + thread / 32 * kGroups * kGroupColumns + 4 * Lane().g;
  TwoRows<true, bf16, Out> two(target);
  Update low_rank;
  low_rank.read_factors(update, first, target.width);
  wait_for_work_before();
  Pack<float, 4> x[kGroups][2];
  Pack<bf16, 4> y[kGroups][2];
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    two.load(target.x, target.width, first + group * kGroupColumns, x[group]);
    two.load(target.y, update.stride, first + group * kGroupColumns, y[group]);
  }
  low_rank.read_low(update, target.n_rows);
  // All blocks have begun and can be sent to. It stands here because no read moves behind it.
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");

  float squares[2] = {};
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    float sums[2][4];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int c = 0; c < 4; ++c) sums[i][c] = to_float(y[group][i].at[c]);
    }
    low_rank.sum(group, sums);
    two.add(first + group * kGroupColumns, sums, x[group], squares);
  }
  put_squares(squares, own);
  Pack<float, 4> factors[kGroups];
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    factors[group] = two.factors(first + group * kGroupColumns);
  }
  __syncthreads();
  if (thread < kBlocks * kTileRows) {
    const int row = thread % kTileRows;
    float sum = 0;
#pragma unroll
    for (const auto& part : own) sum += part[row];
    all.send(thread / kTileRows, block, row, sum);
  }
  all.wait();
  float inverse[2];
  inverse_norms(all.parts, target.width, target.eps, inverse);
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    two.norm(first + group * kGroupColumns, x[group], inverse, factors[group]);
  }
#endif
}

}  // namespace

template <typename T, typename Out>
void add_residual(const LowRank<T>& update, const T* y, std::int64_t n_rows, std::int64_t width,
                  const float* factor, float eps, float* x, Out* normed, StreamHandle stream) {
  if (n_rows == 0) return;
  const Residual<T, Out> target{.y = y,
                                .factor = factor,
                                .x = x,
                                .normed = normed,
                                .n_rows = n_rows,
                                .width = static_cast<int>(width),
                                .eps = eps};
  const auto n_tiles = static_cast<unsigned>((n_rows + kTileRows - 1) / kTileRows);
  const bool in_fours = width % 4 == 0 && update.stride % 4 == 0 && update.b_stride % 4 == 0;
  if constexpr (sizeof(T) == 2) {
    static PerDevice<bool> built;
    const bool takes_rank = update.rank % 4 == 0 && update.rank <= kMaxRank &&
                            reinterpret_cast<std::uintptr_t>(update.low) % 8 == 0;
    if (in_fours && takes_rank && width <= kBlocks * kBlockColumns &&
        has_body(cluster_kernel<Out>, built)) {
      launch("add_residual", cluster_kernel<Out>,
             {.grid = dim3(n_tiles, kBlocks), .n_threads = kWarps * 32, .cluster_size = kBlocks},
             stream, update, target);
      return;
    }
  }
  auto* kernel = in_fours ? &plain_kernel<true, T, Out> : &plain_kernel<false, T, Out>;
  launch("add_residual", kernel, {.grid = n_tiles, .n_threads = kPlainWarps * 32}, stream, update,
         target);
}

#define JEMM_INSTANTIATE(T, Out)                                                      \
  template void add_residual(const LowRank<T>&, const T*, std::int64_t, std::int64_t, \
                             const float*, float, float*, Out*, StreamHandle);
JEMM_INSTANTIATE(float, float)
JEMM_INSTANTIATE(__nv_bfloat16, float)
JEMM_INSTANTIATE(__nv_bfloat16, __nv_bfloat16)
#undef JEMM_INSTANTIATE

}  // namespace jemm::gpu

// The second factor of the low-rank updates, applied where the product is consumed.
//
// BF16: a warp keeps the factors of 32 columns of one layer as fragments of the matrix unit, which
// sums over the rank on top of the outputs, and goes down the rows 16 at a time. Fragments are laid
// out so that a lane holds 8 neighbouring columns of a row and 4 neighbouring terms of the sum,
// which makes all accesses 8 or 16 bytes wide:
//   column 2 t + e of tile j  <->  column 8 t + 2 j + e
//   terms 2 t, 2 t + 1, 2 t + 8, 2 t + 9  <->  terms 4 t, ..., 4 t + 3
// Float, other ranks than 0, 16 and 32, and layers that do not start at multiples of 32: a thread
// an output. Results of a row do not depend on the others.
#include <algorithm>

#include "gpu/cuda.h"
#include "gpu/kernels/device.cuh"
#include "gpu/kernels/kernels.h"
#include "gpu/kernels/tile_product.cuh"

namespace jemm::gpu {
namespace {

using bf16 = __nv_bfloat16;

constexpr int kThreads = 256;
constexpr int kWarpColumns = 32, kTileRows = 16;
constexpr int kWarpsAcross = 4, kWarpsDown = 2;  // of a block
constexpr int kColumnTiles = kWarpColumns / 8;

template <typename T>
struct Target {
  const T* y = nullptr;  // the product; its stride is the update's
  T* out = nullptr;
  std::int64_t n_rows = 0, width = 0, out_stride = 0;
  int warp_rows = 0;  // a multiple of 16
};

template <typename T>
__device__ int layer_of(const LowRank<T>& update, int column) {
  int layer = 0;
#pragma unroll
  for (int i = 0; i < 3; ++i) layer += i + 1 < update.n_layers && column >= update.ends[i];
  return layer;
}

template <int kSteps>
constexpr int kHeld = kSteps == 0 ? 1 : kSteps;  // an array has a member

// The factors of a warp's columns, all of one layer, and where their low-rank inputs stand.
template <int kSteps>
struct Factors {
  std::uint32_t terms[kHeld<kSteps>][kColumnTiles][2];
  const bf16* low;

  __device__ Factors(const LowRank<bf16>& update, int first_column) {
    const Lane lane;
    low = update.low + layer_of(update, first_column) * update.rank + 4 * lane.t;
    // The padding behind the last layer may be shorter than the warp's columns.
    const int column = min(first_column + lane.g / 2 * 8, static_cast<int>(update.b_stride) - 8);
    const std::uint32_t half = lane.g % 2 == 0 ? 0x5410 : 0x7632;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      std::uint32_t rows[4][kColumnTiles];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const auto eight = *reinterpret_cast<const uint4*>(
            update.b + (16 * step + 4 * lane.t + i) * update.b_stride + column);
        rows[i][0] = eight.x, rows[i][1] = eight.y, rows[i][2] = eight.z, rows[i][3] = eight.w;
      }
#pragma unroll
      for (int j = 0; j < kColumnTiles; ++j) {
        terms[step][j][0] = __byte_perm(rows[0][j], rows[1][j], half);
        terms[step][j][1] = __byte_perm(rows[2][j], rows[3][j], half);
      }
    }
  }
};

// 16 rows of a warp's columns with their low-rank inputs: rows g and g + 8 of a lane, whose offsets
// in the product are `offsets`.
template <int kSteps>
struct Tile {
  uint4 outputs[2];
  uint2 low[kHeld<kSteps>][2];

  __device__ Tile(const bf16* y, const Factors<kSteps>& factors, const std::int64_t (&offsets)[2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      outputs[i] = *reinterpret_cast<const uint4*>(y + offsets[i]);
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        low[step][i] = *reinterpret_cast<const uint2*>(factors.low + offsets[i] + 16 * step);
      }
    }
  }

  /// values[j][2 i], values[j][2 i + 1]: columns 2 j and 2 j + 1 of row i, updated.
  __device__ void update(const Factors<kSteps>& factors, float (&values)[kColumnTiles][4]) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::uint32_t words[4] = {outputs[i].x, outputs[i].y, outputs[i].z, outputs[i].w};
#pragma unroll
      for (int j = 0; j < kColumnTiles; ++j) {
        values[j][2 * i] = __uint_as_float(words[j] << 16);
        values[j][2 * i + 1] = __uint_as_float(words[j] & 0xffff0000U);
      }
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const std::uint32_t a[4] = {low[step][0].x, low[step][1].x, low[step][0].y, low[step][1].y};
#pragma unroll
      for (int j = 0; j < kColumnTiles; ++j) {
        mma_bf16(values[j], a, factors.terms[step][j][0], factors.terms[step][j][1]);
      }
    }
  }
};

// width and strides are multiples of 8, layers start at multiples of 32.
template <int kSteps, bool kActivates>
__global__ void __launch_bounds__(kThreads, kSteps == 2 ? 2 : 3)
    matrix_kernel(LowRank<bf16> update, Target<bf16> target) {
  const Lane lane;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int first_column =
      (static_cast<int>(blockIdx.x) * kWarpsAcross + warp % kWarpsAcross) * kWarpColumns;
  const std::int64_t first_row =
      (static_cast<std::int64_t>(blockIdx.y) * kWarpsDown + warp / kWarpsAcross) * target.warp_rows;
  const std::int64_t end = min(first_row + target.warp_rows, target.n_rows);
  const int width = static_cast<int>(target.width);
  if (first_column >= width) return;
  const int column = first_column + 8 * lane.t;
  const bf16* y = target.y + min(column, width - 8);
  const Factors<kSteps> factors(update, first_column);
  const Factors<kSteps> up_factors =
      kActivates ? Factors<kSteps>(update, width + first_column) : factors;
  for (std::int64_t begin = first_row; begin < end; begin += kTileRows) {
    const std::int64_t rows[2] = {begin + lane.g, begin + lane.g + 8};
    const std::int64_t offsets[2] = {min(rows[0], end - 1) * update.stride,
                                     min(rows[1], end - 1) * update.stride};
    const Tile<kSteps> tile(y, factors, offsets);
    float values[kColumnTiles][4];
    if constexpr (kActivates) {
      const Tile<kSteps> up_tile(y + width, up_factors, offsets);
      float up[kColumnTiles][4];
      tile.update(factors, values);
      up_tile.update(up_factors, up);
#pragma unroll
      for (int i = 0; i < 4 * kColumnTiles; ++i) {
        values[i / 4][i % 4] = silu_for<bf16>(values[i / 4][i % 4]) * up[i / 4][i % 4];
      }
    } else {
      tile.update(factors, values);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (column >= width || rows[i] >= end) continue;
      const uint4 eight = {pack_pair(values[0][2 * i], values[0][2 * i + 1]),
                           pack_pair(values[1][2 * i], values[1][2 * i + 1]),
                           pack_pair(values[2][2 * i], values[2][2 * i + 1]),
                           pack_pair(values[3][2 * i], values[3][2 * i + 1])};
      *reinterpret_cast<uint4*>(target.out + rows[i] * target.out_stride + column) = eight;
    }
  }
}

template <typename T>
__device__ float updated(const LowRank<T>& update, const Target<T>& target, std::int64_t row,
                         int column) {
  float sum = 0;
  const T* low = update.low + row * update.stride + layer_of(update, column) * update.rank;
  for (int j = 0; j < update.rank; ++j) {
    sum += to_float(low[j]) * to_float(update.b[j * update.b_stride + column]);
  }
  return to_float(target.y[row * update.stride + column]) + sum;
}

template <typename T, bool kActivates>
__global__ void __launch_bounds__(kThreads) plain_kernel(LowRank<T> update, Target<T> target) {
  const std::int64_t row = blockIdx.x;
  const int column = static_cast<int>(blockIdx.y * kThreads + threadIdx.x);
  if (column >= target.width) return;
  float value = updated(update, target, row, column);
  if constexpr (kActivates) {
    value =
        silu_for<T>(value) * updated(update, target, row, column + static_cast<int>(target.width));
  }
  target.out[row * target.out_stride + column] = from_float<T>(value);
}

unsigned blocks(std::int64_t n, std::int64_t size) {
  return static_cast<unsigned>((n + size - 1) / size);
}

// Whether a warp's columns are of one layer each, and everything is aligned.
template <bool kActivates>
bool suits_matrix_unit(const LowRank<bf16>& update, const Target<bf16>& target) {
  bool suits = update.rank % 16 == 0 && update.rank <= 32 && target.width % 8 == 0 &&
               target.out_stride % 8 == 0 && update.stride % 8 == 0 && update.b_stride % 8 == 0;
  for (int i = 0; i + 1 < update.n_layers; ++i) suits = suits && update.ends[i] % kWarpColumns == 0;
  return suits && (!kActivates || target.width % kWarpColumns == 0);
}

template <bool kActivates, typename T>
void consume(const LowRank<T>& update, Target<T> target, StreamHandle stream) {
  if (target.n_rows == 0) return;
  if constexpr (sizeof(T) == 2) {
    if (suits_matrix_unit<kActivates>(update, target)) {
      // Few rows are spread over more warps, many share the factors.
      target.warp_rows = target.n_rows < 512 ? kTileRows : 8 * kTileRows;
      const dim3 grid(blocks(target.width, kWarpsAcross * kWarpColumns),
                      blocks(target.n_rows, kWarpsDown * target.warp_rows));
      auto* kernel = update.rank == 0    ? &matrix_kernel<0, kActivates>
                     : update.rank == 16 ? &matrix_kernel<1, kActivates>
                                         : &matrix_kernel<2, kActivates>;
      kernel<<<grid, kThreads, 0, stream>>>(update, target);
      check_launch("low_rank");
      return;
    }
  }
  const dim3 grid(static_cast<unsigned>(target.n_rows), blocks(target.width, kThreads));
  plain_kernel<T, kActivates><<<grid, kThreads, 0, stream>>>(update, target);
  check_launch("low_rank");
}

}  // namespace

template <typename T>
void add_low_rank(const LowRank<T>& update, std::int64_t n_rows, std::int64_t width, T* y,
                  StreamHandle stream) {
  if (update.rank == 0) return;
  consume<false>(
      update,
      Target<T>{.y = y, .out = y, .n_rows = n_rows, .width = width, .out_stride = update.stride},
      stream);
}

template <typename T>
void silu_multiply(const LowRank<T>& update, const T* y, std::int64_t n_rows,
                   std::int64_t n_outputs, T* out, StreamHandle stream) {
  consume<true>(
      update,
      Target<T>{.y = y, .out = out, .n_rows = n_rows, .width = n_outputs, .out_stride = n_outputs},
      stream);
}

#define JEMM_INSTANTIATE(T)                                                                    \
  template void add_low_rank(const LowRank<T>&, std::int64_t, std::int64_t, T*, StreamHandle); \
  template void silu_multiply(const LowRank<T>&, const T*, std::int64_t, std::int64_t, T*,     \
                              StreamHandle);
JEMM_INSTANTIATE(float)
JEMM_INSTANTIATE(__nv_bfloat16)
#undef JEMM_INSTANTIATE

}  // namespace jemm::gpu

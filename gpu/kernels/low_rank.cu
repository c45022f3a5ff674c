// The second factor of the low-rank updates, applied where the product is consumed.
//
// BF16: a warp keeps the factors of 32 columns of one layer as fragments of the matrix unit, which
// sums over the rank on top of the outputs, and goes down the rows 16 at a time, the next ones
// being read meanwhile. All blocks are there at once, each with an equal share of the work.
// Fragments are laid out so that a lane holds 8 neighbouring columns of a row and 4 neighbouring
// terms of the sum, which makes all accesses 8 or 16 bytes wide:
//   column 2 t + e of tile j  <->  column 8 t + 2 j + e
//   terms 2 t, 2 t + 1, 2 t + 8, 2 t + 9  <->  terms 4 t, ..., 4 t + 3
// Float, other ranks than 0, 16 and 32, and layers that do not start at multiples of 32: a thread
// an output. Results of a row do not depend on the others.
#include <algorithm>

#include "gpu/cuda.h"
#include "gpu/kernels/device.cuh"
#include "gpu/kernels/kernels.h"
#include "gpu/kernels/launch.cuh"
#include "gpu/kernels/tile_product.cuh"

namespace jemm::gpu {
namespace {

using bf16 = __nv_bfloat16;

constexpr int kWarps = 8, kThreads = 32 * kWarps;
constexpr int kWarpColumns = 32, kTileRows = 16;
constexpr int kColumnTiles = kWarpColumns / 8;

// Blocks that a multiprocessor holds, by steps of 16 terms.
constexpr int resident(int n_steps) {
  return n_steps == 2 ? 2 : 3;
}

template <typename T>
struct Target {
  const T* y = nullptr;  // the product; its stride is the update's
  T* out = nullptr;
  std::int64_t n_rows = 0, width = 0, out_stride = 0;
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

// The factors of a warp's columns, all of one layer.
template <int kSteps>
struct Factors {
  std::uint32_t terms[kHeld<kSteps>][kColumnTiles][2];

  __device__ Factors(const LowRank<bf16>& update, int first_column) {
    const Lane lane;
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

// Where a lane's rows g and g + 8 of a tile stand in the product, from its first row on.
struct Rows {
  const bf16* y;
  const bf16* low;
  int offsets[2];

  __device__ Rows(const LowRank<bf16>& update, const Target<bf16>& target, int first)
      : y(target.y + first * update.stride), low(update.low + first * update.stride) {
    const Lane lane;
    const int last = static_cast<int>(target.n_rows) - 1 - first;
    const int stride = static_cast<int>(update.stride);
    offsets[0] = min(lane.g, last) * stride;
    offsets[1] = min(lane.g + 8, last) * stride;
  }
};

// 16 rows of a warp's columns with their low-rank inputs.
template <int kSteps>
struct Tile {
  std::uint32_t outputs[2][kColumnTiles];
  uint2 low[kHeld<kSteps>][2];

  __device__ Tile(const Rows& rows, int column, int low_column) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const auto eight = *reinterpret_cast<const uint4*>(rows.y + (rows.offsets[i] + column));
      outputs[i][0] = eight.x, outputs[i][1] = eight.y;
      outputs[i][2] = eight.z, outputs[i][3] = eight.w;
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        low[step][i] =
            *reinterpret_cast<const uint2*>(rows.low + (rows.offsets[i] + low_column + 16 * step));
      }
    }
  }

  /// values[2 i], values[2 i + 1]: columns 2 j and 2 j + 1 of row i, updated.
  __device__ void update(const Factors<kSteps>& factors, int j, float (&values)[4]) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      values[2 * i] = __uint_as_float(outputs[i][j] << 16);
      values[2 * i + 1] = __uint_as_float(outputs[i][j] & 0xffff0000U);
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const std::uint32_t a[4] = {low[step][0].x, low[step][1].x, low[step][0].y, low[step][1].y};
      mma_bf16(values, a, factors.terms[step][j][0], factors.terms[step][j][1]);
    }
  }
};

// Tiles below each other, from first_row on: gates and what they are multiplied with, or plain
// outputs.
template <int kSteps, bool kActivates>
__device__ void update_column(const LowRank<bf16>& update, const Target<bf16>& target,
                              int first_column, int first_row, int n_tiles) {
  const Lane lane;
  const int width = static_cast<int>(target.width), n_rows = static_cast<int>(target.n_rows);
  const int column = first_column + 8 * lane.t, readable = min(column, width - 8);
  const int up = kActivates ? width : 0;
  const int low = layer_of(update, first_column) * update.rank + 4 * lane.t;
  const int up_low = layer_of(update, up + first_column) * update.rank + 4 * lane.t;
  struct Inputs {
    Tile<kSteps> tile, up_tile;
  };
  const auto load = [&](int row0) {
    const Rows rows(update, target, row0);
    const Tile<kSteps> tile(rows, readable, low);
    if constexpr (kActivates) {
      return Inputs{tile, Tile<kSteps>(rows, up + readable, up_low)};
    } else {
      return Inputs{tile, tile};
    }
  };
  const Factors<kSteps> factors(update, first_column);
  const Factors<kSteps> up_factors =
      kActivates ? Factors<kSteps>(update, up + first_column) : factors;
  wait_for_work_before();
  Inputs next = load(first_row);
  for (int row0 = first_row; n_tiles > 0; row0 += kTileRows, --n_tiles) {
    const Inputs now = next;
    if (n_tiles > 1) next = load(row0 + kTileRows);
    std::uint32_t words[2][kColumnTiles];
#pragma unroll
    for (int j = 0; j < kColumnTiles; ++j) {
      float values[4];
      now.tile.update(factors, j, values);
      if constexpr (kActivates) {
        float up_values[4];
        now.up_tile.update(up_factors, j, up_values);
#pragma unroll
        for (int i = 0; i < 4; ++i) values[i] = silu_for<bf16>(values[i]) * up_values[i];
      }
      words[0][j] = pack_pair(values[0], values[1]);
      words[1][j] = pack_pair(values[2], values[3]);
    }
    bf16* out = target.out + row0 * target.out_stride;
    const int out_stride = static_cast<int>(target.out_stride);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = lane.g + 8 * i;
      if (column >= width || row >= n_rows - row0) continue;
      *reinterpret_cast<uint4*>(out + (row * out_stride + column)) = {words[i][0], words[i][1],
                                                                      words[i][2], words[i][3]};
    }
  }
}

// What blocks do: pieces, a block's columns of 16 rows, are numbered down the columns, and each
// block takes as many as the others or one more.
struct Shares {
  int n_down = 0, n_each = 0, n_longer = 0;
};

// width and strides are multiples of 8, layers start at multiples of 32.
template <int kSteps, bool kActivates>
__global__ void __launch_bounds__(kThreads, resident(kSteps))
    matrix_kernel(LowRank<bf16> update, Target<bf16> target, Shares shares) {
  read_ahead(update.ahead);
  const int block = static_cast<int>(blockIdx.x), warp = static_cast<int>(threadIdx.x) / 32;
  int piece = block * shares.n_each + min(block, shares.n_longer);
  int n_left = shares.n_each + (block < shares.n_longer ? 1 : 0);
  while (n_left > 0) {
    const int across = piece / shares.n_down, down = piece % shares.n_down;
    const int n = min(n_left, shares.n_down - down);
    const int first_column = (across * kWarps + warp) * kWarpColumns;
    if (first_column < static_cast<int>(target.width)) {
      update_column<kSteps, kActivates>(update, target, first_column, down * kTileRows, n);
    }
    piece += n, n_left -= n;
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
  wait_for_work_before();
  if (column >= target.width) return;
  float value = updated(update, target, row, column);
  if constexpr (kActivates) {
    value =
        silu_for<T>(value) * updated(update, target, row, column + static_cast<int>(target.width));
  }
  target.out[row * target.out_stride + column] = from_float<T>(value);
}

int n_multiprocessors() {
  static PerDevice<int> counts;
  const int device = current_device();
  return counts.get(device, [device] {
    int n = 0;
    cuda_check(cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, device),
               "asking for the multiprocessors");
    return n;
  });
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
      const auto n_down = static_cast<int>((target.n_rows + kTileRows - 1) / kTileRows);
      const int n_pieces = static_cast<int>(blocks(target.width, kWarps * kWarpColumns)) * n_down;
      const int n_blocks = std::min(n_pieces, n_multiprocessors() * resident(update.rank / 16));
      const Shares shares{
          .n_down = n_down, .n_each = n_pieces / n_blocks, .n_longer = n_pieces % n_blocks};
      auto* kernel = update.rank == 0    ? &matrix_kernel<0, kActivates>
                     : update.rank == 16 ? &matrix_kernel<1, kActivates>
                                         : &matrix_kernel<2, kActivates>;
      launch("low_rank", kernel, {.grid = static_cast<unsigned>(n_blocks), .n_threads = kThreads},
             stream, update, target, shares);
      return;
    }
  }
  const dim3 grid(static_cast<unsigned>(target.n_rows), blocks(target.width, kThreads));
  launch("low_rank", plain_kernel<T, kActivates>, {.grid = grid, .n_threads = kThreads}, stream,
         update, target);
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

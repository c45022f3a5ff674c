// The second factor of the low-rank updates, applied where the product is consumed.
//
// BF16: a warp takes 16 rows by 32 columns, whose outputs it reads before anything else: bound by
// their bytes. The sums over the rank run on the matrix unit. Its fragments are laid out so that a
// lane holds 8 neighbouring columns of a row and 4 neighbouring terms of the sum, which makes all
// accesses 8 or 16 bytes wide:
//   column 2 t + e of tile j  <->  column 8 t + 2 j + e
//   terms 2 t, 2 t + 1, 2 t + 8, 2 t + 9  <->  terms 4 t, ..., 4 t + 3
// Float, and BF16 where offsets are odd: a thread an output. Results of a row do not depend on the
// others.
#include "gpu/cuda.h"
#include "gpu/kernels/device.cuh"
#include "gpu/kernels/kernels.h"
#include "gpu/kernels/tile_product.cuh"

namespace jemm::gpu {
namespace {

using bf16 = __nv_bfloat16;

constexpr int kThreads = 256;
constexpr int kWarpColumns = 32, kWarpRows = 16;
constexpr int kBlockColumns = 4 * kWarpColumns, kBlockRows = 2 * kWarpRows;
constexpr int kColumnTiles = kWarpColumns / 8;

template <typename T>
struct Target {
  const T* y = nullptr;  // the product; its stride is the update's
  T* out = nullptr;
  std::int64_t n_rows = 0, width = 0, y_stride = 0, out_stride = 0;
};

template <typename T>
__device__ int layer_of(const LowRank<T>& update, int column) {
  int layer = 0;
#pragma unroll
  for (int i = 0; i < 3; ++i) layer += i + 1 < update.n_layers && column >= update.ends[i];
  return layer;
}

// 16 terms of b for the warp's columns, zero where a column is not the layer's.
__device__ void load_factors(const LowRank<bf16>& update, int first_term, int first_column,
                             int layer, std::uint32_t (&b)[kColumnTiles][2]) {
  const Lane lane;
  const int column = first_column + lane.g / 2 * 8;
  std::uint32_t terms[4][kColumnTiles] = {};
  if (column < update.b_stride) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const auto eight = *reinterpret_cast<const uint4*>(
          update.b + (first_term + 4 * lane.t + i) * update.b_stride + column);
      terms[i][0] = eight.x, terms[i][1] = eight.y, terms[i][2] = eight.z, terms[i][3] = eight.w;
    }
  }
  const std::uint32_t half = lane.g % 2 == 0 ? 0x5410 : 0x7632;
#pragma unroll
  for (int j = 0; j < kColumnTiles; ++j) {
    const bool own = layer_of(update, column + 2 * j + lane.g % 2) == layer;
    b[j][0] = own ? __byte_perm(terms[0][j], terms[1][j], half) : 0;
    b[j][1] = own ? __byte_perm(terms[2][j], terms[3][j], half) : 0;
  }
}

// 16 terms of low for the warp's rows, zero behind the last row.
__device__ void load_low(const LowRank<bf16>& update, int layer, int first_term,
                         std::int64_t first_row, std::int64_t n_rows, std::uint32_t (&a)[4]) {
  const Lane lane;
  const bf16* low = update.low + layer * update.rank + first_term + 4 * lane.t;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const std::int64_t row = first_row + lane.g + 8 * i;
    const uint2 four = row < n_rows ? *reinterpret_cast<const uint2*>(low + row * update.stride)
                                    : make_uint2(0, 0);
    a[i] = four.x, a[i + 2] = four.y;
  }
}

// The updates of the warp's rows and columns.
struct Updates {
  float values[kColumnTiles][4] = {};

  __device__ Updates(const LowRank<bf16>& update, std::int64_t first_row, std::int64_t n_rows,
                     int first_column) {
    if (update.rank == 0) return;
    const int last_layer = layer_of(update, first_column + kWarpColumns - 1);
    for (int layer = layer_of(update, first_column); layer <= last_layer; ++layer) {
      for (int term = 0; term < update.rank; term += 16) {
        std::uint32_t a[4], b[kColumnTiles][2];
        load_low(update, layer, term, first_row, n_rows, a);
        load_factors(update, term, first_column, layer, b);
#pragma unroll
        for (int j = 0; j < kColumnTiles; ++j) mma_bf16(values[j], a, b[j][0], b[j][1]);
      }
    }
  }
};

// A lane's eight columns of rows g and g + 8.
struct Outputs {
  uint4 eights[2] = {};

  __device__ void load(const bf16* y, std::int64_t stride, std::int64_t row, std::int64_t n_rows) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (row + 8 * i < n_rows) {
        eights[i] = *reinterpret_cast<const uint4*>(y + (row + 8 * i) * stride);
      }
    }
  }
};

// Columns 2 j and 2 j + 1 of the eight, updated.
__device__ float2 updated_pair(const uint4& eight, const Updates& updates, int half, int j) {
  const std::uint32_t words[4] = {eight.x, eight.y, eight.z, eight.w};
  return {__uint_as_float(words[j] << 16) + updates.values[j][2 * half],
          __uint_as_float(words[j] & 0xffff0000U) + updates.values[j][2 * half + 1]};
}

__device__ std::uint32_t packed(float2 pair) {
  const __nv_bfloat162 both = __float22bfloat162_rn(pair);
  return *reinterpret_cast<const std::uint32_t*>(&both);
}

// width is a multiple of 8, offsets as well.
template <bool kActivates>
__global__ void __launch_bounds__(kThreads, 3)
    matrix_kernel(LowRank<bf16> update, Target<bf16> target) {
  const Lane lane;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int first_column = static_cast<int>(blockIdx.x) * kBlockColumns + warp % 4 * kWarpColumns;
  const std::int64_t first_row =
      static_cast<std::int64_t>(blockIdx.y) * kBlockRows + warp / 4 * kWarpRows;
  if (first_row >= target.n_rows || first_column >= target.width) return;
  const int column = first_column + 8 * lane.t;
  const bool inside = column < target.width;
  const int second = kActivates ? static_cast<int>(target.width) : 0;
  Outputs base, other;
  if (inside) {
    const std::int64_t row = first_row + lane.g;
    base.load(target.y + column, target.y_stride, row, target.n_rows);
    if constexpr (kActivates) {
      other.load(target.y + second + column, target.y_stride, row, target.n_rows);
    }
  }
  const Updates updates(update, first_row, target.n_rows, first_column);
  const Updates other_updates =
      kActivates ? Updates(update, first_row, target.n_rows, second + first_column) : updates;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    std::uint32_t words[kColumnTiles];
#pragma unroll
    for (int j = 0; j < kColumnTiles; ++j) {
      float2 pair = updated_pair(base.eights[i], updates, i, j);
      if constexpr (kActivates) {
        const float2 up = updated_pair(other.eights[i], other_updates, i, j);
        pair = {silu_for<bf16>(pair.x) * up.x, silu_for<bf16>(pair.y) * up.y};
      }
      words[j] = packed(pair);
    }
    const std::int64_t row = first_row + lane.g + 8 * i;
    if (inside && row < target.n_rows) {
      *reinterpret_cast<uint4*>(target.out + row * target.out_stride + column) =
          make_uint4(words[0], words[1], words[2], words[3]);
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
  return to_float(target.y[row * target.y_stride + column]) + sum;
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

template <bool kActivates, typename T>
void consume(const LowRank<T>& update, const Target<T>& target, StreamHandle stream) {
  if (target.n_rows == 0) return;
  const auto blocks = [](std::int64_t n, int size) {
    return static_cast<unsigned>((n + size - 1) / size);
  };
  if constexpr (sizeof(T) == 2) {
    const auto in_eights = [](auto... n) { return ((n % 8 == 0) && ...); };
    if (in_eights(target.width, target.y_stride, target.out_stride, update.b_stride) &&
        update.rank % 16 == 0) {
      const dim3 grid(blocks(target.width, kBlockColumns), blocks(target.n_rows, kBlockRows));
      matrix_kernel<kActivates><<<grid, kThreads, 0, stream>>>(update, target);
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
  consume<false>(update,
                 Target<T>{.y = y,
                           .out = y,
                           .n_rows = n_rows,
                           .width = width,
                           .y_stride = update.stride,
                           .out_stride = update.stride},
                 stream);
}

template <typename T>
void silu_multiply(const LowRank<T>& update, const T* y, std::int64_t n_rows,
                   std::int64_t n_outputs, T* out, StreamHandle stream) {
  consume<true>(update,
                Target<T>{.y = y,
                          .out = out,
                          .n_rows = n_rows,
                          .width = n_outputs,
                          .y_stride = update.stride,
                          .out_stride = n_outputs},
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

// What a patch's place adds to it and turns in it: learned positions, rotary angles.
#include "gpu/kernels/vision_device.cuh"
#include "gpu/kernels/vision_kernels.h"

namespace jemm::gpu {
namespace {

constexpr int kThreads = 128;

// The two entries of an axis of `side` positions that coordinate `index` of `size` lies between.
struct AxisTaps {
  int entry[2];
  float weight[2];
};

__device__ AxisTaps axis_taps(int index, int size, int side) {
  // Not as a fused or approximate quotient: an entry must be hit exactly where the reference does.
  const float at = __fdiv_rn(__fmul_rn(static_cast<float>(index), static_cast<float>(side - 1)),
                             static_cast<float>(max(size - 1, 1)));
  const float below = floorf(at);
  const int entry = static_cast<int>(below);
  const float above = at - below;
  return {{min(entry, side - 1), min(entry + 1, side - 1)},
          {1.0f - above, 1.0f - fabsf(above - 1.0f)}};
}

// A block a patch.
template <typename T>
__global__ void add_positions_kernel(const T* grid, int side, const PatchPlace* places, T* x,
                                     int width) {
  const std::int64_t patch = blockIdx.x;
  const PatchPlace place = places[patch];
  const AxisTaps rows = axis_taps(place.row, place.n_rows, side);
  const AxisTaps columns = axis_taps(place.column, place.n_columns, side);
  const T* corner[4];
  float weight[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    corner[i] = grid + (std::int64_t{rows.entry[i / 2]} * side + columns.entry[i % 2]) * width;
    weight[i] = rows.weight[i / 2] * columns.weight[i % 2];
  }
  for (int c = static_cast<int>(threadIdx.x); c < width; c += kThreads) {
    float position = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) position += to_float(corner[i][c]) * weight[i];
    T& value = x[patch * width + c];
    value = from_float<T>(to_float(value) + to_float(from_float<T>(position)));
  }
}

// A thread turns kN neighbouring pairs of a query head or a key head.
template <typename T, int kN>
__global__ void rotate_kernel(const PatchPlace* places, const Turn* turns, T* qkv,
                              std::int64_t n_patches, int n_heads, int head_dim) {
  const int half = head_dim / 2, quarter = half / 2, n_packs = half / kN;
  const std::int64_t task = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int i = static_cast<int>(task % n_packs) * kN;
  const std::int64_t head = task / n_packs % (2 * n_heads);  // queries, then keys
  const std::int64_t patch = task / n_packs / (2 * n_heads);
  if (patch >= n_patches) return;
  const PatchPlace place = places[patch];
  T* x = qkv + patch * 3 * n_heads * head_dim + head * head_dim + i;
  auto low = load_pack<T, kN>(x), high = load_pack<T, kN>(x + half);
#pragma unroll
  for (int j = 0; j < kN; ++j) {
    const bool by_row = i + j < quarter;
    const std::int64_t coordinate = by_row ? place.row : place.column;
    const Turn turn = turns[coordinate * quarter + (by_row ? i + j : i + j - quarter)];
    const float a = to_float(low.at[j]), b = to_float(high.at[j]);
    low.at[j] = from_float<T>(a * turn.cosine - b * turn.sine);
    high.at[j] = from_float<T>(b * turn.cosine + a * turn.sine);
  }
  store_pack(x, low);
  store_pack(x + half, high);
}

}  // namespace

template <typename T>
void add_positions(const T* grid, std::int64_t side, const PatchPlace* places, T* x,
                   std::int64_t n_patches, std::int64_t width, StreamHandle stream) {
  if (n_patches == 0) return;
  add_positions_kernel<<<static_cast<unsigned>(n_patches), kThreads, 0, stream>>>(
      grid, static_cast<int>(side), places, x, static_cast<int>(width));
  check_launch("add_positions");
}

template <typename T>
void rotate_patches(const PatchPlace* places, const Turn* turns, T* qkv, std::int64_t n_patches,
                    std::int64_t n_heads, std::int64_t head_dim, StreamHandle stream) {
  if (n_patches == 0) return;
  const bool by_four = head_dim % 8 == 0;
  const std::int64_t n_tasks = n_patches * 2 * n_heads * (head_dim / 2) / (by_four ? 4 : 1);
  const auto launch = by_four ? rotate_kernel<T, 4> : rotate_kernel<T, 1>;
  launch<<<blocks_for(n_tasks, kThreads), kThreads, 0, stream>>>(
      places, turns, qkv, n_patches, static_cast<int>(n_heads), static_cast<int>(head_dim));
  check_launch("rotate_patches");
}

template void add_positions(const float*, std::int64_t, const PatchPlace*, float*, std::int64_t,
                            std::int64_t, StreamHandle);
template void add_positions(const bf16*, std::int64_t, const PatchPlace*, bf16*, std::int64_t,
                            std::int64_t, StreamHandle);
template void rotate_patches(const PatchPlace*, const Turn*, float*, std::int64_t, std::int64_t,
                             std::int64_t, StreamHandle);
template void rotate_patches(const PatchPlace*, const Turn*, bf16*, std::int64_t, std::int64_t,
                             std::int64_t, StreamHandle);

}  // namespace jemm::gpu

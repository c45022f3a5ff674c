// The causal convolution before the delta rule and the gated norm behind it.
//
// A warp takes a head (the convolution) or two rows of one (the norm) over a strip of rows, a lane
// some neighbouring channels. What a strip reads is asked for at once, before the first of it is
// used; the convolution reads each row but once and carries the inputs before it in registers,
// which it reads anew where a run begins. Bound by the bytes of x and y.
#include <algorithm>
#include <initializer_list>

#include "gpu/cuda.h"
#include "gpu/kernels/device.cuh"
#include "gpu/kernels/kernels.h"
#include "gpu/kernels/launch.cuh"

namespace jemm::gpu {
namespace {

constexpr int kWarps = 8;
constexpr int kMaxHead = kMaxDeltaHead;
constexpr int kMaxWidth = 4;                 // taps
constexpr int kBefore = kMaxWidth - 1;       // inputs before a row that it sees
constexpr int kConvRows = 8, kNormRows = 4;  // of a strip

// The channels of a head that a lane holds, kMaxHead / kEach lanes a head. kAligned: they are all
// there or none, and in memory at a multiple of their size (16 bytes at the most).
template <int kEach, bool kAligned>
struct Channels {
  static constexpr int kLanes = kMaxHead / kEach;

  __device__ explicit Channels(int width)
      : first(static_cast<int>(threadIdx.x) % kLanes * kEach),
        n(min(max(width - first, 0), kEach)) {}

  template <typename T>
  __device__ Pack<T, kEach> load(const T* head) const {
    Pack<T, kEach> to = {};
    if constexpr (kAligned) {
      if (n > 0) to = load_pack<T, kEach>(head + first);
    } else {
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        if (i < n) to.at[i] = head[first + i];
      }
    }
    return to;
  }

  template <typename T>
  __device__ void store(const float (&x)[kEach], T* head) const {
    Pack<T, kEach> from;
#pragma unroll
    for (int i = 0; i < kEach; ++i) from.at[i] = from_float<T>(x[i]);
    if constexpr (kAligned) {
      if (n > 0) store_pack(head + first, from);
    } else {
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        if (i < n) head[first + i] = from.at[i];
      }
    }
  }

  // The sum over a head's lanes, in each of them.
  __device__ float sum(float x) const {
#pragma unroll
    for (int offset = kLanes / 2; offset > 0; offset /= 2) {
      x += __shfl_xor_sync(0xffffffffU, x, offset);
    }
    return x;
  }

  int first, n;
};

// 1 / sqrt(x) to the precision of a T.
template <typename T>
__device__ float inverse_root(float x) {
  return sizeof(T) == 2 ? rsqrtf(x) : 1.0f / sqrtf(x);
}

struct Strip {
  __device__ Strip(std::int64_t n_rows, int rows_each)
      : row0(static_cast<std::int64_t>(blockIdx.x) * rows_each),
        n(static_cast<int>(min(static_cast<std::int64_t>(rows_each), n_rows - row0))) {}
  std::int64_t row0;
  int n;  // rows
  int head = static_cast<int>(blockIdx.y) * kWarps + static_cast<int>(threadIdx.x) / 32;
};

constexpr int kConvEach = 4;  // channels of a lane

template <typename T, bool kAligned>
__global__ void __launch_bounds__(32 * kWarps) causal_conv_kernel(ConvArgs args, const T* x, T* y) {
  const Strip strip(args.n_rows, kConvRows);
  const int n_key_heads = 2 * args.n_key_heads;
  if (strip.head >= n_key_heads + args.n_value_heads) return;
  const int n_channels = n_key_heads * args.key_dim + args.n_value_heads * args.value_dim;
  const bool is_key = strip.head < n_key_heads;
  const int begin = is_key
                        ? strip.head * args.key_dim
                        : n_key_heads * args.key_dim + (strip.head - n_key_heads) * args.value_dim;
  const Channels<kConvEach, kAligned> channels(is_key ? args.key_dim : args.value_dim);
  x += begin;
  y += begin;

  // Taps, and later inputs before the row, oldest first; a narrower convolution lacks the oldest.
  const int n_before = args.width - 1, lacking = kBefore - n_before;
  float taps[kMaxWidth][kConvEach];
#pragma unroll
  for (int j = 0; j < kMaxWidth; ++j) {
    Pack<float, kConvEach> tap = {};
    if (j >= lacking) {
      tap = channels.load(args.taps + static_cast<std::int64_t>(j - lacking) * n_channels + begin);
    }
#pragma unroll
    for (int i = 0; i < kConvEach; ++i) taps[j][i] = tap.at[i];
  }
  wait_for_work_before();

  // The strip's rows behind those before it, which are mostly what its first rows see.
  Pack<T, kConvEach> inputs[kBefore + kConvRows];
#pragma unroll
  for (int r = 0; r < kBefore + kConvRows; ++r) {
    const std::int64_t row = strip.row0 + min(r - kBefore, strip.n - 1);
    inputs[r] = channels.load(x + max(row, std::int64_t{0}) * args.x_stride);
  }
  // Bit r: row r - kBefore + 1 of the strip begins a run, or there is no such row.
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t asked = strip.row0 + min(lane - kBefore + 1, strip.n - 1);
  const unsigned begins = __ballot_sync(
      0xffffffffU,
      asked < 1 || (n_before > 0 && args.previous[(asked + 1) * n_before - 1] != asked - 1));

  float before[kBefore][kConvEach];
#pragma unroll
  for (int j = 0; j < kBefore; ++j) {
#pragma unroll
    for (int i = 0; i < kConvEach; ++i) before[j][i] = to_float(inputs[j].at[i]);
  }

#pragma unroll
  for (int r = 0; r < kConvRows; ++r) {
    if (r >= strip.n) break;
    const std::int64_t row = strip.row0 + r;
    constexpr unsigned kFirst = (1U << kBefore) - 1;
    if ((begins >> r & (r == 0 ? kFirst : 1U << (kBefore - 1))) != 0) {
#pragma unroll
      for (int j = 0; j < kBefore; ++j) {
        const std::int64_t from = j < lacking ? -1 : args.previous[row * n_before + j - lacking];
        const auto input = channels.load(x + max(from, std::int64_t{0}) * args.x_stride);
#pragma unroll
        for (int i = 0; i < kConvEach; ++i) before[j][i] = from < 0 ? 0.0f : to_float(input.at[i]);
      }
    }
    float c[kConvEach];
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kConvEach; ++i) {
      const float now = to_float(inputs[kBefore + r].at[i]);
      c[i] = 0;
#pragma unroll
      for (int j = 0; j < kBefore; ++j) {
        if (j >= lacking) c[i] += before[j][i] * taps[j][i];
      }
      c[i] = silu_for<T>(c[i] + now * taps[kBefore][i]);
      sum += c[i] * c[i];
#pragma unroll
      for (int j = 0; j + 1 < kBefore; ++j) before[j][i] = before[j + 1][i];
      before[kBefore - 1][i] = now;
    }
    if (is_key) {
      const float factor = inverse_root<T>(channels.sum(sum) + 1e-6f);
#pragma unroll
      for (float& value : c) value *= factor;
    }
    channels.store(c, y + row * n_channels);
  }
}

constexpr int kNormEach = 8;

template <typename T, bool kAligned>
__global__ void __launch_bounds__(32 * kWarps)
    gated_norm_kernel(const T* core, const T* z, std::int64_t z_stride, const float* factor,
                      float eps, std::int64_t n_rows, int n_heads, int width, T* y) {
  const Strip strip(n_rows, kNormRows);
  if (strip.head >= n_heads) return;
  const Channels<kNormEach, kAligned> channels(width);
  constexpr int kAtOnce = 32 / channels.kLanes;  // rows
  const int own = static_cast<int>(threadIdx.x) % 32 / channels.kLanes;
  const auto factors = channels.load(factor);
  wait_for_work_before();
  Pack<T, kNormEach> values[kNormRows / kAtOnce], gates[kNormRows / kAtOnce];
#pragma unroll
  for (int r = 0; r < kNormRows / kAtOnce; ++r) {
    const std::int64_t row = strip.row0 + min(r * kAtOnce + own, strip.n - 1);
    values[r] = channels.load(core + (row * n_heads + strip.head) * width);
    gates[r] = channels.load(z + row * z_stride + strip.head * width);
  }
#pragma unroll
  for (int r = 0; r < kNormRows / kAtOnce; ++r) {
    float v[kNormEach];
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kNormEach; ++i) {
      v[i] = to_float(values[r].at[i]);
      sum += v[i] * v[i];
    }
    const float inverse = inverse_root<T>(channels.sum(sum) / static_cast<float>(width) + eps);
#pragma unroll
    for (int i = 0; i < kNormEach; ++i) {
      v[i] = v[i] * inverse * factors.at[i] * silu_for<T>(to_float(gates[r].at[i]));
    }
    const int row = r * kAtOnce + own;
    if (row < strip.n) {
      channels.store(v, y + ((strip.row0 + row) * n_heads + strip.head) * width);
    }
  }
}

dim3 grid_of(std::int64_t n_rows, int rows_each, int n_heads) {
  return dim3(static_cast<unsigned>((n_rows + rows_each - 1) / rows_each),
              static_cast<unsigned>((n_heads + kWarps - 1) / kWarps));
}

void check_head(std::int32_t width) {
  check_limit("a delta-rule head's width", width, kMaxHead);
}

// Whether a lane's `each` channels can be moved at once everywhere.
bool is_aligned(std::initializer_list<const void*> pointers,
                std::initializer_list<std::int64_t> lengths, int each) {
  return std::all_of(pointers.begin(), pointers.end(),
                     [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; }) &&
         std::all_of(lengths.begin(), lengths.end(),
                     [each](std::int64_t n) { return n % each == 0; });
}

}  // namespace

template <typename T>
void causal_conv(const ConvArgs& args, const T* x, T* y, StreamHandle stream) {
  if (args.n_rows == 0) return;
  check_head(args.key_dim);
  check_head(args.value_dim);
  check_limit("the convolution's width", args.width, kMaxWidth);
  const auto kernel =
      is_aligned({x, y, args.taps}, {args.x_stride, args.key_dim, args.value_dim}, kConvEach)
          ? causal_conv_kernel<T, true>
          : causal_conv_kernel<T, false>;
  const dim3 grid = grid_of(args.n_rows, kConvRows, 2 * args.n_key_heads + args.n_value_heads);
  launch("causal_conv", kernel, {.grid = grid, .n_threads = 32 * kWarps}, stream, args, x, y);
}

template <typename T>
void gated_norm(const T* core, const T* z, std::int64_t z_stride, const float* factor, float eps,
                std::int64_t n_rows, std::int32_t n_heads, std::int32_t head_dim, T* y,
                StreamHandle stream) {
  if (n_rows == 0) return;
  check_head(head_dim);
  const auto kernel = is_aligned({core, z, factor, y}, {z_stride, head_dim}, kNormEach)
                          ? gated_norm_kernel<T, true>
                          : gated_norm_kernel<T, false>;
  launch("gated_norm", kernel,
         {.grid = grid_of(n_rows, kNormRows, n_heads), .n_threads = 32 * kWarps}, stream, core, z,
         z_stride, factor, eps, n_rows, n_heads, head_dim, y);
}

#define JEMM_INSTANTIATE(T)                                                                     \
  template void causal_conv(const ConvArgs&, const T*, T*, StreamHandle);                       \
  template void gated_norm(const T*, const T*, std::int64_t, const float*, float, std::int64_t, \
                           std::int32_t, std::int32_t, T*, StreamHandle);
JEMM_INSTANTIATE(float)
JEMM_INSTANTIATE(__nv_bfloat16)
#undef JEMM_INSTANTIATE

}  // namespace jemm::gpu

// The causal convolution before the delta rule and the gated norm behind it, a head a warp.
//
// Lane i holds channels 2 i, 2 i + 1, 64 + 2 i, ... of its head in registers, at most 2 kPairs of
// them. Bound by the bytes of x and y (x is read W times, from the caches but for the first).
#include "gpu/cuda.h"
#include "gpu/kernels/device.cuh"
#include "gpu/kernels/kernels.h"

namespace jemm::gpu {
namespace {

constexpr int kWarps = 8;
constexpr int kPairs = 4;  // of channels, in a lane
constexpr int kMaxHead = 64 * kPairs;

// Channels `channel` and the next of a head, zeros behind its width.
template <typename T>
__device__ float2 load_channels(const T* head, int channel, int width) {
  const T* p = head + channel;
  if (channel + 1 < width && reinterpret_cast<std::uintptr_t>(p) % (2 * sizeof(T)) == 0) {
    return load_pair(p);
  }
  return {channel < width ? to_float(p[0]) : 0.0f, channel + 1 < width ? to_float(p[1]) : 0.0f};
}

template <typename T>
__device__ void store_channels(float2 x, T* head, int channel, int width) {
  T* p = head + channel;
  if (channel + 1 < width && reinterpret_cast<std::uintptr_t>(p) % (2 * sizeof(T)) == 0) {
    store_pair(p, x);
    return;
  }
  if (channel < width) p[0] = from_float<T>(x.x);
  if (channel + 1 < width) p[1] = from_float<T>(x.y);
}

struct Warp {
  int lane = static_cast<int>(threadIdx.x) % 32;
  int head = static_cast<int>(blockIdx.y) * kWarps + static_cast<int>(threadIdx.x) / 32;
  std::int64_t row = blockIdx.x;
};

template <typename T>
__global__ void __launch_bounds__(32 * kWarps) causal_conv_kernel(ConvArgs args, const T* x, T* y) {
  const Warp warp;
  if (warp.head >= 2 * args.n_key_heads + args.n_value_heads) return;
  const int n_channels = 2 * args.n_key_heads * args.key_dim + args.n_value_heads * args.value_dim;
  const bool is_key = warp.head < 2 * args.n_key_heads;
  const int width = is_key ? args.key_dim : args.value_dim;
  const int begin = is_key ? warp.head * args.key_dim
                           : 2 * args.n_key_heads * args.key_dim +
                                 (warp.head - 2 * args.n_key_heads) * args.value_dim;
  float2 c[kPairs] = {};
#pragma unroll 4
  for (int j = 0; j < args.width; ++j) {
    const std::int64_t from =
        j + 1 == args.width ? warp.row : args.previous[warp.row * (args.width - 1) + j];
    const T* source = x + max(from, std::int64_t{0}) * args.x_stride + begin;
    const float* taps = args.taps + static_cast<std::int64_t>(j) * n_channels + begin;
    const float there = from < 0 ? 0.0f : 1.0f;
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      const int channel = 64 * i + 2 * warp.lane;
      if (64 * i >= width) break;
      const float2 value = load_channels(source, channel, width);
      const float2 tap = load_channels(taps, channel, width);
      c[i].x += value.x * (tap.x * there);
      c[i].y += value.y * (tap.y * there);
    }
  }
  float sum = 0;
#pragma unroll
  for (float2& pair : c) {
    pair = {silu_for<T>(pair.x), silu_for<T>(pair.y)};
    sum += pair.x * pair.x + pair.y * pair.y;
  }
  const float factor = is_key ? 1.0f / sqrtf(warp_sum(sum) + 1e-6f) : 1.0f;
  T* out = y + warp.row * n_channels + begin;
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    if (64 * i >= width) break;
    store_channels({c[i].x * factor, c[i].y * factor}, out, 64 * i + 2 * warp.lane, width);
  }
}

template <typename T>
__global__ void __launch_bounds__(32 * kWarps)
    gated_norm_kernel(const T* core, const T* z, std::int64_t z_stride, const float* factor,
                      float eps, int n_heads, int width, T* y) {
  const Warp warp;
  if (warp.head >= n_heads) return;
  const std::int64_t at = (warp.row * n_heads + warp.head) * width;
  const T* gate = z + warp.row * z_stride + warp.head * width;
  float2 v[kPairs] = {};
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    if (64 * i >= width) break;
    v[i] = load_channels(core + at, 64 * i + 2 * warp.lane, width);
    sum += v[i].x * v[i].x + v[i].y * v[i].y;
  }
  const float inverse = 1.0f / sqrtf(warp_sum(sum) / static_cast<float>(width) + eps);
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    if (64 * i >= width) break;
    const int channel = 64 * i + 2 * warp.lane;
    const float2 g = load_channels(gate, channel, width);
    const float2 f = load_channels(factor, channel, width);
    store_channels(
        {v[i].x * inverse * f.x * silu_for<T>(g.x), v[i].y * inverse * f.y * silu_for<T>(g.y)},
        y + at, channel, width);
  }
}

dim3 grid_of(std::int64_t n_rows, int n_heads) {
  return dim3(static_cast<unsigned>(n_rows),
              static_cast<unsigned>((n_heads + kWarps - 1) / kWarps));
}

void check_head(std::int32_t width) {
  check_limit("a head's width", width, kMaxHead);
}

}  // namespace

template <typename T>
void causal_conv(const ConvArgs& args, const T* x, T* y, StreamHandle stream) {
  if (args.n_rows == 0) return;
  check_head(args.key_dim);
  check_head(args.value_dim);
  causal_conv_kernel<<<grid_of(args.n_rows, 2 * args.n_key_heads + args.n_value_heads), 32 * kWarps,
                       0, stream>>>(args, x, y);
  check_launch("causal_conv");
}

template <typename T>
void gated_norm(const T* core, const T* z, std::int64_t z_stride, const float* factor, float eps,
                std::int64_t n_rows, std::int32_t n_heads, std::int32_t head_dim, T* y,
                StreamHandle stream) {
  if (n_rows == 0) return;
  check_head(head_dim);
  gated_norm_kernel<<<grid_of(n_rows, n_heads), 32 * kWarps, 0, stream>>>(
      core, z, z_stride, factor, eps, n_heads, head_dim, y);
  check_launch("gated_norm");
}

#define JEMM_INSTANTIATE(T)                                                                     \
  template void causal_conv(const ConvArgs&, const T*, T*, StreamHandle);                       \
  template void gated_norm(const T*, const T*, std::int64_t, const float*, float, std::int64_t, \
                           std::int32_t, std::int32_t, T*, StreamHandle);
JEMM_INSTANTIATE(float)
JEMM_INSTANTIATE(__nv_bfloat16)
#undef JEMM_INSTANTIATE

}  // namespace jemm::gpu

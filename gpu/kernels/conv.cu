// The causal convolution before the delta rule and the gated norm behind it.
//
// A warp takes one head over a strip of rows, a lane four neighbouring channels of it. The rows of
// a strip are read at once, before the first is used, and each but once: the inputs before a row
// are carried along in registers, and read anew where a run begins. Bound by the bytes of x and y.
#include "gpu/cuda.h"
#include "gpu/kernels/device.cuh"
#include "gpu/kernels/kernels.h"

namespace jemm::gpu {
namespace {

constexpr int kWarps = 8;
constexpr int kEach = 4;  // channels of a lane
constexpr int kMaxHead = 32 * kEach;
constexpr int kMaxWidth = 4;                 // taps
constexpr int kBefore = kMaxWidth - 1;       // inputs before a row that it sees
constexpr int kConvRows = 8, kNormRows = 4;  // of a strip

// A lane's channels of one row as they are stored.
template <typename T>
struct alignas(kEach * sizeof(T)) Stored {
  T x[kEach];
};

// Channels of a head that a lane holds: `n` of them from `first` on, at once where `whole`.
struct Channels {
  __device__ explicit Channels(int width)
      : first(static_cast<int>(threadIdx.x) % 32 * kEach), n(min(max(width - first, 0), kEach)) {}

  template <typename T>
  __device__ Stored<T> load(const T* head) const {
    const T* p = head + first;
    if (is_whole(p)) return *reinterpret_cast<const Stored<T>*>(p);
    Stored<T> to;
#pragma unroll
    for (int i = 0; i < kEach; ++i) to.x[i] = i < n ? p[i] : from_float<T>(0.0f);
    return to;
  }
  template <typename T>
  __device__ void store(const float (&x)[kEach], T* head) const {
    T* p = head + first;
    if (is_whole(p)) {
      Stored<T> from;
#pragma unroll
      for (int i = 0; i < kEach; ++i) from.x[i] = from_float<T>(x[i]);
      *reinterpret_cast<Stored<T>*>(p) = from;
      return;
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (i < n) p[i] = from_float<T>(x[i]);
    }
  }

  int first, n;

 private:
  template <typename T>
  __device__ bool is_whole(const T* p) const {
    return n == kEach && reinterpret_cast<std::uintptr_t>(p) % sizeof(Stored<T>) == 0;
  }
};

struct Strip {
  __device__ Strip(std::int64_t n_rows, int rows_each)
      : row0(static_cast<std::int64_t>(blockIdx.x) * rows_each),
        n(static_cast<int>(min(static_cast<std::int64_t>(rows_each), n_rows - row0))) {}
  std::int64_t row0;
  int n;  // rows
  int head = static_cast<int>(blockIdx.y) * kWarps + static_cast<int>(threadIdx.x) / 32;
};

template <typename T>
__global__ void __launch_bounds__(32 * kWarps) causal_conv_kernel(ConvArgs args, const T* x, T* y) {
  const Strip strip(args.n_rows, kConvRows);
  const int n_key_heads = 2 * args.n_key_heads;
  if (strip.head >= n_key_heads + args.n_value_heads) return;
  const int n_channels = n_key_heads * args.key_dim + args.n_value_heads * args.value_dim;
  const bool is_key = strip.head < n_key_heads;
  const int begin = is_key
                        ? strip.head * args.key_dim
                        : n_key_heads * args.key_dim + (strip.head - n_key_heads) * args.value_dim;
  const Channels channels(is_key ? args.key_dim : args.value_dim);
  x += begin;
  y += begin;

  Stored<T> inputs[kConvRows];
#pragma unroll
  for (int r = 0; r < kConvRows; ++r) {
    inputs[r] = channels.load(x + (strip.row0 + min(r, strip.n - 1)) * args.x_stride);
  }
  // Taps and inputs before the row, oldest first; those that a narrower convolution lacks are zero.
  const int lacking = kMaxWidth - args.width;
  float taps[kMaxWidth][kEach] = {}, before[kBefore][kEach] = {};
#pragma unroll
  for (int j = 0; j < kMaxWidth; ++j) {
    if (j < lacking) continue;
    const Stored<float> stored =
        channels.load(args.taps + static_cast<std::int64_t>(j - lacking) * n_channels + begin);
#pragma unroll
    for (int i = 0; i < kEach; ++i) taps[j][i] = stored.x[i];
  }

  const auto read_before = [&](std::int64_t row) {
    const std::int32_t* previous = args.previous + row * (args.width - 1);
#pragma unroll
    for (int j = 0; j < kBefore; ++j) {
      if (j < lacking) continue;
      const std::int64_t from = previous[j - lacking];
      const Stored<T> stored = channels.load(x + max(from, std::int64_t{0}) * args.x_stride);
#pragma unroll
      for (int i = 0; i < kEach; ++i) before[j][i] = from < 0 ? 0.0f : to_float(stored.x[i]);
    }
  };
  read_before(strip.row0);
  // Bit r: row r of the strip begins a run. A lane asks for its row, before anything is stored.
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t asked = strip.row0 + min(lane, strip.n - 1);
  const unsigned begins = __ballot_sync(
      0xffffffffU,
      args.width > 1 && args.previous[(asked + 1) * (args.width - 1) - 1] != asked - 1);

#pragma unroll
  for (int r = 0; r < kConvRows; ++r) {
    if (r >= strip.n) break;
    const std::int64_t row = strip.row0 + r;
    if (r > 0 && (begins >> r & 1) != 0) read_before(row);
    float c[kEach];
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const float now = to_float(inputs[r].x[i]);
      c[i] = 0;
#pragma unroll
      for (int j = 0; j < kBefore; ++j) c[i] += before[j][i] * taps[j][i];
      c[i] = silu_for<T>(c[i] + now * taps[kBefore][i]);
      sum += c[i] * c[i];
#pragma unroll
      for (int j = 0; j + 1 < kBefore; ++j) before[j][i] = before[j + 1][i];
      before[kBefore - 1][i] = now;
    }
    if (is_key) {
      const float factor = 1.0f / sqrtf(warp_sum(sum) + 1e-6f);
#pragma unroll
      for (float& value : c) value *= factor;
    }
    channels.store(c, y + row * n_channels);
  }
}

template <typename T>
__global__ void __launch_bounds__(32 * kWarps)
    gated_norm_kernel(const T* core, const T* z, std::int64_t z_stride, const float* factor,
                      float eps, std::int64_t n_rows, int n_heads, int width, T* y) {
  const Strip strip(n_rows, kNormRows);
  if (strip.head >= n_heads) return;
  const Channels channels(width);
  Stored<T> values[kNormRows], gates[kNormRows];
#pragma unroll
  for (int r = 0; r < kNormRows; ++r) {
    const std::int64_t row = strip.row0 + min(r, strip.n - 1);
    values[r] = channels.load(core + (row * n_heads + strip.head) * width);
    gates[r] = channels.load(z + row * z_stride + strip.head * width);
  }
  const Stored<float> factors = channels.load(factor);
#pragma unroll
  for (int r = 0; r < kNormRows; ++r) {
    if (r >= strip.n) break;
    float v[kEach];
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      v[i] = to_float(values[r].x[i]);
      sum += v[i] * v[i];
    }
    const float inverse = 1.0f / sqrtf(warp_sum(sum) / static_cast<float>(width) + eps);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      v[i] = v[i] * inverse * factors.x[i] * silu_for<T>(to_float(gates[r].x[i]));
    }
    channels.store(v, y + ((strip.row0 + r) * n_heads + strip.head) * width);
  }
}

dim3 grid_of(std::int64_t n_rows, int rows_each, int n_heads) {
  return dim3(static_cast<unsigned>((n_rows + rows_each - 1) / rows_each),
              static_cast<unsigned>((n_heads + kWarps - 1) / kWarps));
}

void check_head(std::int32_t width) {
  check_limit("a delta-rule head's width", width, kMaxHead);
}

}  // namespace

template <typename T>
void causal_conv(const ConvArgs& args, const T* x, T* y, StreamHandle stream) {
  if (args.n_rows == 0) return;
  check_head(args.key_dim);
  check_head(args.value_dim);
  check_limit("the convolution's width", args.width, kMaxWidth);
  const dim3 grid = grid_of(args.n_rows, kConvRows, 2 * args.n_key_heads + args.n_value_heads);
  causal_conv_kernel<<<grid, 32 * kWarps, 0, stream>>>(args, x, y);
  check_launch("causal_conv");
}

template <typename T>
void gated_norm(const T* core, const T* z, std::int64_t z_stride, const float* factor, float eps,
                std::int64_t n_rows, std::int32_t n_heads, std::int32_t head_dim, T* y,
                StreamHandle stream) {
  if (n_rows == 0) return;
  check_head(head_dim);
  gated_norm_kernel<<<grid_of(n_rows, kNormRows, n_heads), 32 * kWarps, 0, stream>>>(
      core, z, z_stride, factor, eps, n_rows, n_heads, head_dim, y);
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

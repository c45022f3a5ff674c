// Query and key heads of full attention: norm and rotation, a head a warp. Bound by the bytes of
// the heads, read once and written once.
#include "gpu/cuda.h"
#include "gpu/kernels/device.cuh"
#include "gpu/kernels/kernels.h"
#include "gpu/kernels/launch.cuh"

namespace jemm::gpu {
namespace {

constexpr int kWarps = 4;
constexpr int kValues = 8;  // of a head, in a lane
static_assert(32 * kValues == kMaxAttentionHead);

// Angles are FP32, as the reference's; their sine and cosine are those of a double.
__global__ void rotary_table_kernel(const std::int32_t* positions, const float* frequency,
                                    const std::int32_t* axes, std::int64_t n, int half,
                                    float* cosine, float* sine) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const std::int64_t row = i / half;
  const int f = static_cast<int>(i % half);
  const float angle = static_cast<float>(positions[3 * row + axes[f]]) * frequency[f];
  double s, c;
  sincos(static_cast<double>(angle), &s, &c);
  cosine[i] = static_cast<float>(c);
  sine[i] = static_cast<float>(s);
}

// kValues values from `first` on, zeros behind the width. kIsWhole: widths and addresses are
// multiples of kValues values, read at once; else value by value.
template <bool kIsWhole, typename T>
__device__ void load_values(const T* from, int first, int width, float (&x)[kValues]) {
  if constexpr (kIsWhole) {
    Pack<T, kValues> pack{};
    if (first < width) pack = load_pack<T, kValues>(from + first);
    for (int j = 0; j < kValues; ++j) x[j] = to_float(pack.at[j]);
  } else {
    for (int j = 0; j < kValues; ++j) x[j] = first + j < width ? to_float(from[first + j]) : 0.0f;
  }
}

// The cosines, or sines, that turn values `first` and on of a head: a pair's two values share one.
template <bool kIsWhole>
__device__ void load_turns(const float* from, int first, int half, float (&x)[kValues]) {
  if constexpr (kIsWhole) {
    load_values<true>(from, first < half ? first : first - half, half, x);
  } else {
    for (int j = 0; j < kValues; ++j) {
      const int i = first + j;
      x[j] = i < 2 * half ? from[i < half ? i : i - half] : 0.0f;
    }
  }
}

template <bool kIsWhole, typename T>
__device__ void store_values(const float (&x)[kValues], T* to, int first, int width) {
  if constexpr (kIsWhole) {
    Pack<T, kValues> pack;
    for (int j = 0; j < kValues; ++j) pack.at[j] = from_float<T>(x[j]);
    if (first < width) store_pack(to + first, pack);
  } else {
    for (int j = 0; j < kValues && first + j < width; ++j) to[first + j] = from_float<T>(x[j]);
  }
}

template <typename T, bool kIsWhole>
__global__ void __launch_bounds__(32 * kWarps)
    norm_and_rotate_kernel(HeadArgs args, const T* projected, T* q, T* k) {
  __shared__ alignas(32) float shared[kWarps][kMaxAttentionHead];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int head = static_cast<int>(blockIdx.y) * kWarps + warp;
  if (head >= args.n_heads + args.n_kv_heads) return;
  const std::int64_t row = blockIdx.x;
  const int width = args.head_dim, half = args.half;
  const bool is_query = head < args.n_heads;
  const int kv_head = head - args.n_heads;
  const T* from = projected + row * args.stride +
                  (is_query ? 2 * head * width : (2 * args.n_heads + kv_head) * width);
  T* to = is_query ? q + (row * args.n_heads + head) * width
                   : k + (row * args.n_kv_heads + kv_head) * width;

  const int first = lane * kValues;
  float x[kValues], factor[kValues], cosine[kValues], sine[kValues];
  load_values<kIsWhole>(is_query ? args.q_factor : args.k_factor, first, width, factor);
  wait_for_work_before();
  load_values<kIsWhole>(from, first, width, x);
  load_turns<kIsWhole>(args.cosine + row * half, first, half, cosine);
  load_turns<kIsWhole>(args.sine + row * half, first, half, sine);
  float sum = 0;
  for (int j = 0; j < kValues; ++j) sum += x[j] * x[j];
  const float inverse = 1.0f / sqrtf(warp_sum(sum) / static_cast<float>(width) + args.eps);
  for (int j = 0; j < kValues; ++j) x[j] = x[j] * inverse * factor[j];

  if (first < 2 * half) store_values<true>(x, shared[warp], first, kMaxAttentionHead);
  __syncwarp();
  if (first < 2 * half) {
    for (int j = 0; j < kValues; ++j) {
      const int i = first + j;
      if (!kIsWhole && i >= 2 * half) break;
      const bool is_left = (kIsWhole ? first : i) < half;
      const float other = shared[warp][is_left ? i + half : i - half];
      x[j] = x[j] * cosine[j] + (is_left ? -other : other) * sine[j];
    }
  }
  store_values<kIsWhole>(x, to, first, width);
}

}  // namespace

void rotary_table(const std::int32_t* positions, const float* frequency, const std::int32_t* axes,
                  std::int64_t n_rows, std::int32_t half, float* cosine, float* sine,
                  StreamHandle stream) {
  const std::int64_t n = n_rows * half;
  if (n == 0) return;
  rotary_table_kernel<<<static_cast<unsigned>((n + 255) / 256), 256, 0, stream>>>(
      positions, frequency, axes, n, half, cosine, sine);
  check_launch("rotary_table");
}

template <typename T>
void norm_and_rotate(const HeadArgs& args, const T* projected, T* q, T* k, StreamHandle stream) {
  if (args.n_rows == 0) return;
  check_limit("an attention head's width", args.head_dim, kMaxAttentionHead);
  const int n_heads = args.n_heads + args.n_kv_heads;
  const dim3 grid(static_cast<unsigned>(args.n_rows),
                  static_cast<unsigned>((n_heads + kWarps - 1) / kWarps));
  const auto whole = [](const auto* p) {
    return reinterpret_cast<std::uintptr_t>(p) % (kValues * sizeof *p) == 0;
  };
  const bool is_whole = args.head_dim % kValues == 0 && args.half % kValues == 0 &&
                        args.stride % kValues == 0 && whole(projected) && whole(q) && whole(k) &&
                        whole(args.q_factor) && whole(args.k_factor) && whole(args.cosine) &&
                        whole(args.sine);
  const auto kernel = is_whole ? norm_and_rotate_kernel<T, true> : norm_and_rotate_kernel<T, false>;
  launch("norm_and_rotate", kernel, {.grid = grid, .n_threads = 32 * kWarps}, stream, args,
         projected, q, k);
}
template void norm_and_rotate(const HeadArgs&, const float*, float*, float*, StreamHandle);
template void norm_and_rotate(const HeadArgs&, const __nv_bfloat16*, __nv_bfloat16*, __nv_bfloat16*,
                              StreamHandle);

}  // namespace jemm::gpu

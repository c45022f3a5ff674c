// Query and key heads of full attention: norm and rotation, a head a warp.
#include "gpu/cuda.h"
#include "gpu/kernels/device.cuh"
#include "gpu/kernels/kernels.h"

namespace jemm::gpu {
namespace {

constexpr int kWarps = 8;

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

template <typename T>
__global__ void __launch_bounds__(32 * kWarps)
    norm_and_rotate_kernel(HeadArgs args, const T* projected, T* q, T* k) {
  __shared__ float shared[kWarps][kMaxAttentionHead];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int head = static_cast<int>(blockIdx.y) * kWarps + warp;
  if (head >= args.n_heads + args.n_kv_heads) return;
  const std::int64_t row = blockIdx.x;
  const int width = args.head_dim;
  const bool is_query = head < args.n_heads;
  const int kv_head = head - args.n_heads;
  const T* from = projected + row * args.stride +
                  (is_query ? 2 * head * width : (2 * args.n_heads + kv_head) * width);
  T* to = is_query ? q + (row * args.n_heads + head) * width
                   : k + (row * args.n_kv_heads + kv_head) * width;
  const float* factor = is_query ? args.q_factor : args.k_factor;

  float* x = shared[warp];
  float sum = 0;
  for (int i = lane; i < width; i += 32) {
    x[i] = to_float(from[i]);
    sum += x[i] * x[i];
  }
  const float inverse = 1.0f / sqrtf(warp_sum(sum) / static_cast<float>(width) + args.eps);
  for (int i = lane; i < width; i += 32) x[i] = x[i] * inverse * factor[i];
  __syncwarp();
  const int half = args.half;
  const float* cosine = args.cosine + row * half;
  const float* sine = args.sine + row * half;
  for (int i = lane; i < width; i += 32) {
    float y = x[i];
    if (i < half) {
      y = x[i] * cosine[i] - x[i + half] * sine[i];
    } else if (i < 2 * half) {
      y = x[i] * cosine[i - half] + x[i - half] * sine[i - half];
    }
    to[i] = from_float<T>(y);
  }
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
  norm_and_rotate_kernel<<<grid, 32 * kWarps, 0, stream>>>(args, projected, q, k);
  check_launch("norm_and_rotate");
}
template void norm_and_rotate(const HeadArgs&, const float*, float*, float*, StreamHandle);
template void norm_and_rotate(const HeadArgs&, const __nv_bfloat16*, __nv_bfloat16*, __nv_bfloat16*,
                              StreamHandle);

}  // namespace jemm::gpu

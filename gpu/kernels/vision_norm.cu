// Layer norm, and the residual sum before it.
#include <algorithm>

#include "gpu/kernels/vision_device.cuh"
#include "gpu/kernels/vision_kernels.h"

namespace jemm::gpu {
namespace {

constexpr int kWarp = 32;
constexpr int kRowsABlock = 4;
constexpr std::int64_t kSharedBytes = kMaxNormWidth * sizeof(float);

// A warp a row. Its values stay in shared memory between the three passes; a lane reads what it
// wrote itself.
template <typename T, int kN>
__global__ void layer_norm_kernel(LayerNorm<T> op, std::int64_t n_rows, int width) {
  extern __shared__ float shared[];
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (row >= n_rows) return;
  float* values = shared + threadIdx.y * width;
  const std::int64_t begin = row * width;

  float sum = 0;
  for (int c = static_cast<int>(threadIdx.x) * kN; c < width; c += kWarp * kN) {
    auto x = load_pack<T, kN>(op.x + begin + c);
    if (op.update != nullptr) {
      const auto update = load_pack<T, kN>(op.update + begin + c);
      for (int i = 0; i < kN; ++i) {
        x.at[i] = from_float<T>(to_float(x.at[i]) + to_float(update.at[i]));
      }
      store_pack(op.x + begin + c, x);
    }
    for (int i = 0; i < kN; ++i) {
      values[c + i] = to_float(x.at[i]);
      sum += values[c + i];
    }
  }
  const float mean = warp_sum(sum) / static_cast<float>(width);

  float squares = 0;
  for (int c = static_cast<int>(threadIdx.x) * kN; c < width; c += kWarp * kN) {
    for (int i = 0; i < kN; ++i) squares += (values[c + i] - mean) * (values[c + i] - mean);
  }
  const float variance = warp_sum(squares) / static_cast<float>(width);
  const float scale = 1.0f / sqrtf(variance + op.eps);

  for (int c = static_cast<int>(threadIdx.x) * kN; c < width; c += kWarp * kN) {
    const auto weight = load_pack<T, kN>(op.weight + c);
    const auto bias = load_pack<T, kN>(op.bias + c);
    Pack<T, kN> y;
    for (int i = 0; i < kN; ++i) {
      y.at[i] = from_float<T>((values[c + i] - mean) * scale * to_float(weight.at[i]) +
                              to_float(bias.at[i]));
    }
    store_pack(op.y + begin + c, y);
  }
}

}  // namespace

template <typename T>
void layer_norm(const LayerNorm<T>& op, std::int64_t n_rows, std::int64_t width,
                StreamHandle stream) {
  if (n_rows == 0) return;
  const std::int64_t row_bytes = width * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t rows = std::min<std::int64_t>(kRowsABlock, kSharedBytes / row_bytes);
  const dim3 block(kWarp, static_cast<unsigned>(rows));
  const auto bytes = static_cast<std::size_t>(rows * row_bytes);
  const auto launch =
      width % kWide<T> == 0 ? layer_norm_kernel<T, kWide<T>> : layer_norm_kernel<T, 1>;
  launch<<<blocks_for(n_rows, rows), block, bytes, stream>>>(op, n_rows, static_cast<int>(width));
  check_launch("layer_norm");
}

template void layer_norm(const LayerNorm<float>&, std::int64_t, std::int64_t, StreamHandle);
template void layer_norm(const LayerNorm<bf16>&, std::int64_t, std::int64_t, StreamHandle);

}  // namespace jemm::gpu

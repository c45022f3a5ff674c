// Both forms of GELU.
#include "gpu/kernels/vision_device.cuh"
#include "gpu/kernels/vision_kernels.h"

namespace jemm::gpu {
namespace {

constexpr int kThreads = 256;

struct GeluTanh {
  static __device__ float apply(float x) {
    constexpr float kRootTwoOverPi = 0.7978845608028654f;
    return 0.5f * x * (1.0f + tanhf(kRootTwoOverPi * (x + 0.044715f * x * x * x)));
  }
};

struct GeluErf {
  static __device__ float apply(float x) {
    constexpr float kRootHalf = 0.7071067811865476f;
    return 0.5f * x * (1.0f + erff(x * kRootHalf));
  }
};

// The last pack may be cut.
template <typename Function, typename T>
__global__ void activate_kernel(T* x, std::int64_t n) {
  constexpr int kN = kWide<T>;
  const std::int64_t begin = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kN;
  if (begin + kN <= n) {
    auto pack = load_pack<T, kN>(x + begin);
    for (int i = 0; i < kN; ++i) {
      pack.at[i] = from_float<T>(Function::apply(to_float(pack.at[i])));
    }
    store_pack(x + begin, pack);
  } else {
    for (std::int64_t i = begin; i < n; ++i) x[i] = from_float<T>(Function::apply(to_float(x[i])));
  }
}

template <typename Function, typename T>
void activate(T* x, std::int64_t n, StreamHandle stream) {
  if (n == 0) return;
  activate_kernel<Function>
      <<<blocks_for(n, std::int64_t{kThreads} * kWide<T>), kThreads, 0, stream>>>(x, n);
  check_launch("gelu");
}

}  // namespace

template <typename T>
void gelu_tanh(T* x, std::int64_t n, StreamHandle stream) {
  activate<GeluTanh>(x, n, stream);
}

template <typename T>
void gelu_erf(T* x, std::int64_t n, StreamHandle stream) {
  activate<GeluErf>(x, n, stream);
}

template void gelu_tanh(float*, std::int64_t, StreamHandle);
template void gelu_tanh(bf16*, std::int64_t, StreamHandle);
template void gelu_erf(float*, std::int64_t, StreamHandle);
template void gelu_erf(bf16*, std::int64_t, StreamHandle);

}  // namespace jemm::gpu

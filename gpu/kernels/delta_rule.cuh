// What the kernels of the delta rule share whatever their arithmetic: where a head's operands
// stand, its decays. Heads are padded with zeros to kHead. Device code.
#pragma once

#include <cstdint>

#include "gpu/cuda.h"
#include "gpu/kernels/device.cuh"
#include "gpu/kernels/kernels.h"

namespace jemm::gpu::delta {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kChunk = kDeltaChunk;
constexpr int kHead = kMaxDeltaHead;

// Where the operands of a value head stand.
struct HeadPlace {
  template <typename T>
  __device__ HeadPlace(const DeltaArgs<T>& args, int h, int key_head)
      : head(h),
        key_width(args.n_key_heads * args.key_dim),
        stride(2 * key_width + args.n_value_heads * args.value_dim),
        q(key_head * args.key_dim),
        k(key_width + q),
        v(2 * key_width + h * args.value_dim) {}
  template <typename T>
  __device__ HeadPlace(const DeltaArgs<T>& args, int h)
      : HeadPlace(args, h, h / (args.n_value_heads / args.n_key_heads)) {}
  int head, key_width;
  std::int64_t stride;  // of a row of qkv
  int q, k, v;          // offsets in it
};

// Of a chunk's rows; one that is not there neither decays nor adds.
struct Gates {
  alignas(16) float2 cumulated[kChunk];  // c_i / log(2), as the sum of two floats
  float beta[kChunk];
  float key_factor[kChunk];  // beta_i exp(c_i)
};

// (c_i - c_j) / log(2).
__device__ inline float difference(float2 c_i, float2 c_j) {
  return (c_i.x - c_j.x) + (c_i.y - c_j.y);
}

// log(1 + exp(x)), as PyTorch computes it.
__device__ inline float softplus(float x) {
  return x > 20.0f ? x : log1pf(expf(x));
}

// What gates are computed from, as read: two rows a lane, those of a chunk a warp.
template <typename T>
struct GateInputs {
  T a[2], b[2];
  float decay, bias;
};
template <typename T>
__device__ GateInputs<T> read_gates(const DeltaArgs<T>& args, const DeltaChunk& chunk, int head,
                                    const T* a, const T* b) {
  GateInputs<T> inputs;
  inputs.decay = args.decay[head];
  inputs.bias = args.time_bias[head];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int i = min(2 * static_cast<int>(threadIdx.x % 32) + r, chunk.n_rows - 1);
    const std::int64_t at = (chunk.row_begin + i) * args.gate_stride + head;
    inputs.a[r] = a[at];
    inputs.b[r] = b[at];
  }
  return inputs;
}

// One warp: fills `gates` and writes the decays.
template <typename T>
__device__ void fill_gates(const DeltaArgs<T>& args, const DeltaChunk& chunk, int head,
                           const GateInputs<T>& inputs, Gates& gates) {
  constexpr unsigned kAll = 0xffffffffU;
  constexpr double kPerLog2 = 1.4426950408889634;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  double own[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float log_decay = -inputs.decay * softplus(to_float(inputs.a[r]) + inputs.bias);
    own[r] = 2 * lane + r < chunk.n_rows ? static_cast<double>(log_decay) : 0.0;
  }
  double sum = own[0] + own[1];
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const double before = __shfl_up_sync(kAll, sum, static_cast<unsigned>(step));
    if (lane >= step) sum += before;
  }
  const double before = __shfl_up_sync(kAll, sum, 1), last = __shfl_sync(kAll, sum, 31);
  const double cumulated[2] = {lane == 0 ? own[0] : before + own[0], sum};
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int i = 2 * lane + r;
    const double halvings = cumulated[r] * kPerLog2;
    const auto high = static_cast<float>(halvings);
    const float from_start = expf(static_cast<float>(cumulated[r]));
    const bool there = i < chunk.n_rows;
    const float beta = there ? sigmoid(to_float(inputs.b[r])) : 0.0f;
    gates.cumulated[i] = {high, static_cast<float>(halvings - static_cast<double>(high))};
    gates.beta[i] = beta;
    gates.key_factor[i] = from_start * beta;
    if (there) {
      const std::int64_t row = chunk.row_begin + i;
      store_pair(args.decays + (row * args.n_value_heads + head) * 2,
                 {from_start, expf(static_cast<float>(last - cumulated[r]))});
    }
  }
}

template <typename T>
void check_heads(const DeltaArgs<T>& args) {
  check_limit("a delta-rule key's width", args.key_dim, kMaxDeltaHead);
  check_limit("a delta-rule value's width", args.value_dim, kMaxDeltaHead);
}

}  // namespace jemm::gpu::delta

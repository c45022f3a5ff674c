// Sums over rows and blocks, and what the norms make of them.
#include "cpu/norms.h"

#include <algorithm>
#include <cmath>

#include "cpu/vector_math.h"

namespace jemm::cpu {
namespace {

constexpr std::int64_t kStride = 16;  // partial sums, so that the compiler may vectorise

// Sum of squares: 16 partial sums, then their sum in order.
[[gnu::always_inline]] inline float sum_of_squares(const float* x, std::int64_t n) {
  float partial[kStride] = {};
  std::int64_t i = 0;
  for (; i + kStride <= n; i += kStride) {
    for (std::int64_t j = 0; j < kStride; ++j) partial[j] += x[i + j] * x[i + j];
  }
  for (; i < n; ++i) partial[i % kStride] += x[i] * x[i];
  float sum = 0;
  for (const float p : partial) sum += p;
  return sum;
}

// Sums f(x) over the columns of all 64 rows of a block [cols, 64]. Sums of 32 columns are added up,
// which keeps the rounding of long rows small.
template <typename Function>
[[gnu::always_inline]] inline void sum_columns(const float* block, std::int64_t cols, float* sums,
                                               Function f) {
  std::fill_n(sums, kLanes, 0.0f);
  for (std::int64_t c0 = 0; c0 < cols; c0 += 32) {
    float partial[kLanes] = {};
    const std::int64_t c1 = std::min<std::int64_t>(c0 + 32, cols);
    for (std::int64_t c = c0; c < c1; ++c) {
      const float* x = block + c * kLanes;
      for (std::int64_t lane = 0; lane < kLanes; ++lane) partial[lane] += f(x[lane]);
    }
    for (std::int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += partial[lane];
  }
}

// 1 / sqrt(mean of squares + eps) of all 64 rows of a block.
JEMM_CLONES
void inverse_rms(const float* block, std::int64_t cols, float eps, float* inverse) {
  float sums[kLanes];
  sum_columns(block, cols, sums, [](float x) { return x * x; });
  for (std::int64_t lane = 0; lane < kLanes; ++lane) {
    inverse[lane] = 1.0f / std::sqrt(sums[lane] / static_cast<float>(cols) + eps);
  }
}

JEMM_CLONES
void scale_block(const float* x, const float* weight, std::int64_t cols, const float* inverse,
                 float* y) {
  for (std::int64_t c = 0; c < cols; ++c) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      y[c * kLanes + lane] = x[c * kLanes + lane] * inverse[lane] * weight[c];
    }
  }
}

// layer_norm of a block [cols, 64]; y holds x - mean(x) in between.
JEMM_CLONES
void layer_norm_block(const float* x, const float* weight, const float* bias, std::int64_t cols,
                      float eps, float* y) {
  float mean[kLanes], inverse[kLanes];
  sum_columns(x, cols, mean, [](float value) { return value; });
  for (std::int64_t lane = 0; lane < kLanes; ++lane) mean[lane] /= static_cast<float>(cols);
  for (std::int64_t c = 0; c < cols; ++c) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      y[c * kLanes + lane] = x[c * kLanes + lane] - mean[lane];
    }
  }
  inverse_rms(y, cols, eps, inverse);
  for (std::int64_t c = 0; c < cols; ++c) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      y[c * kLanes + lane] = y[c * kLanes + lane] * inverse[lane] * weight[c] + bias[c];
    }
  }
}

}  // namespace

void rms_norm(Context& context, const Tiles& x, std::span<const float> weight, float eps,
              Tiles& y) {
  if (&x != &y) y.reshape(x.rows(), x.cols());
  context.pool.parallel_for(x.n_blocks(), [&](std::int64_t b, int) {
    float inverse[kLanes];
    inverse_rms(x.block(b), x.cols(), eps, inverse);
    scale_block(x.block(b), weight.data(), x.cols(), inverse, y.block(b));
  });
}

void layer_norm(Context& context, const Tiles& x, std::span<const float> weight,
                std::span<const float> bias, float eps, Tiles& y) {
  y.reshape(x.rows(), x.cols());
  context.pool.parallel_for(x.n_blocks(), [&](std::int64_t b, int) {
    layer_norm_block(x.block(b), weight.data(), bias.data(), x.cols(), eps, y.block(b));
  });
}

JEMM_CLONES
void rms_norm_head(float* x, std::span<const float> weight, float eps) {
  const auto n = static_cast<std::int64_t>(weight.size());
  const float* w = weight.data();
  const float inverse = 1.0f / std::sqrt(sum_of_squares(x, n) / static_cast<float>(n) + eps);
  for (std::int64_t i = 0; i < n; ++i) x[i] = x[i] * inverse * w[i];
}

JEMM_CLONES
void gated_rms_norm_head(const float* x, const float* gate, std::span<const float> weight,
                         float eps, float* y) {
  const auto n = static_cast<std::int64_t>(weight.size());
  const float* w = weight.data();
  const float inverse = 1.0f / std::sqrt(sum_of_squares(x, n) / static_cast<float>(n) + eps);
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * inverse * w[i] * vector_silu(gate[i]);
}

JEMM_CLONES
void unit_norm_head(float* x, std::int64_t n, float scale) {
  const float inverse = 1.0f / std::sqrt(sum_of_squares(x, n) + 1e-6f);
  for (std::int64_t i = 0; i < n; ++i) x[i] = x[i] * inverse * scale;
}

}  // namespace jemm::cpu

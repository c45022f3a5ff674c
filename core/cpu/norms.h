// Root-mean-square norms, the layer norm, and the unit norm of the delta rule's heads.
#pragma once

#include <cstdint>
#include <span>

#include "cpu/context.h"
#include "cpu/tiles.h"

namespace jemm::cpu {

/// y = x / sqrt(mean(x^2) + eps) * weight, row by row. `weight` is the factor itself: where the
/// checkpoint stores an offset from one, one has been added. All float32. x and y may be the same.
/// Reference: Qwen3_5RMSNorm.
void rms_norm(Context& context, const Tiles& x, std::span<const float> weight, float eps, Tiles& y);

/// y = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) * weight + bias, row by row, all float32.
/// x and y may not be the same. Reference: torch.nn.LayerNorm.
void layer_norm(Context& context, const Tiles& x, std::span<const float> weight,
                std::span<const float> bias, float eps, Tiles& y);

/// The root-mean-square norm over one head of a row-major matrix, in place: x [n].
void rms_norm_head(float* x, std::span<const float> weight, float eps);

/// y = x / sqrt(mean(x^2) + eps) * weight * silu(gate): [n], norm before gate; `weight` is stored
/// plainly. Reference: Qwen3_5RMSNormGated.
void gated_rms_norm_head(const float* x, const float* gate, std::span<const float> weight,
                         float eps, float* y);

/// x *= scale / sqrt(sum(x^2) + 1e-6): [n], in place. Reference: l2norm.
void unit_norm_head(float* x, std::int64_t n, float scale);

}  // namespace jemm::cpu

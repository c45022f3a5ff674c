// The causal depthwise convolution of the delta-rule layers, with its activation.
#pragma once

#include <span>
#include <vector>

#include "cpu/context.h"
#include "cpu/tiles.h"
#include "plan/runs.h"

namespace jemm::cpu {

/// y[t][c] = silu(sum_j taps[j][c] x[t - width + 1 + j][c]): rows before t are those of t's chain,
/// zero before its start. taps: [width, channels]; x, y: [rows, channels]. Sums in float32, oldest
/// row first. Reference: causal_conv1d_fn.
void causal_conv(Context& context, const Matrix& x, std::span<const float> taps,
                 const std::vector<Run>& runs, Matrix& y);

}  // namespace jemm::cpu

// Linear layers with their low-rank updates, on tiles. Weights stay as the checkpoint has them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "cpu/context.h"
#include "cpu/tiles.h"

namespace jemm::cpu {

/// y = W x + bias + scale B (A x), W [n_out, n_in] in any of the weight types, computed in float32.
struct Linear {
  Tensor weight;
  std::optional<LoraPair> lora;
  std::vector<float> bias{};  // [n_out], or empty

  std::int64_t n_out() const { return weight.shape[0]; }
  std::int64_t n_in() const { return weight.shape[1]; }
};

struct LinearJob {
  const Linear& layer;
  Tiles& out;
};

/// Applies several layers to the same input. The work is split over panels of W's rows, widened
/// to float32 once for all blocks of rows: W's panel [n, n_in] times a block [n_in, 64] is the
/// output's block, in place. Sums are in the order of products.h; the bias, then the update are
/// added to them.
void apply(Context& context, const Tiles& x, std::initializer_list<LinearJob> jobs);

/// out = silu(gate(x)) * up(x), without the two [rows, F] intermediates.
void apply_swiglu(Context& context, const Tiles& x, const Linear& gate, const Linear& up,
                  Tiles& out);

}  // namespace jemm::cpu

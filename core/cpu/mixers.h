// The two token mixers of a layer, from normalised rows to what is added to the residual stream.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/config.h"
#include "cpu/attention.h"
#include "cpu/context.h"
#include "cpu/rotary.h"
#include "cpu/tiles.h"
#include "cpu/weights.h"
#include "plan/runs.h"

namespace jemm::cpu {

/// What a pass knows of its forest before the first layer.
struct PassPlan {
  std::vector<Run> runs;
  StateSlots slots;
  RotaryTable rotary;  // [rows]
};

/// The rows that a layer computes: all of them, or in the last layer those that are read.
struct LayerRows {
  std::vector<std::int64_t> rows;  // packed rows, in the order of the results
  std::vector<QueryTile> tiles;
};

/// Memory of the mixers, kept from layer to layer.
struct MixerMemory {
  Tiles projected, gates, a, b, keys, values;
  Matrix projected_rows, gate_rows, key_rows, value_rows;
  Matrix heads;            // queries, or convolved q, k, v: normalised per head
  Matrix log_decay, beta;  // [rows, Hv]
  Matrix core, gated;      // heads' results before and after their gates
};

struct MixerArgs {
  const TextConfig& config;
  const PassPlan& plan;
  const LayerRows& wanted;
  const Tiles& all;      // [rows, D] normalised input of every row
  const Tiles& queried;  // [wanted, D] the same of the wanted rows
};

/// Both write out [wanted, D].
void attention_mixer(Context& context, const AttentionWeights& weights, const MixerArgs& args,
                     MixerMemory& memory, Tiles& out);
void delta_net_mixer(Context& context, const DeltaNetWeights& weights, const MixerArgs& args,
                     MixerMemory& memory, Tiles& out);

}  // namespace jemm::cpu

// Projections, heads and gates around attention and the delta rule.
#include "cpu/mixers.h"

#include <algorithm>
#include <cmath>

#include "cpu/conv.h"
#include "cpu/delta_rule.h"
#include "cpu/elementwise.h"
#include "cpu/norms.h"
#include "engine/faults.h"

namespace jemm::cpu {
namespace {

// log(1 + exp(x)), as PyTorch computes it.
float softplus(float x) {
  return x > 20.0f ? x : std::log1p(std::exp(x));
}

// Norm and rotation of one query or key head, in place; `row` is the packed row it stands at.
void finish_head(const MixerArgs& args, std::span<const float> norm, std::int64_t row,
                 float* head) {
  const RotaryTable& rotary = args.plan.rotary;
  rms_norm_head(head, norm, static_cast<float>(args.config.rms_norm_eps));
  rotate_head(head, rotary.cosine.row(row), rotary.sine.row(row), args.config.rotary_dim / 2);
}

// q_proj holds each head's query and gate side by side: queries, normalised and rotated, to
// `heads`, gates to `gate_rows`.
void split_queries(Context& context, const AttentionWeights& weights, const MixerArgs& args,
                   MixerMemory& memory) {
  const TextConfig& config = args.config;
  const std::int64_t n_queries = memory.projected_rows.rows(), width = config.head_dim;
  memory.heads.reshape(n_queries, config.n_heads * width);
  memory.gate_rows.reshape(n_queries, config.n_heads * width);
  for_rows(context, n_queries, [&](std::int64_t i) {
    const std::int64_t row = args.wanted.rows[static_cast<std::size_t>(i)];
    for (std::int64_t h = 0; h < config.n_heads; ++h) {
      const float* both = memory.projected_rows.row(i) + 2 * h * width;
      float* query = memory.heads.row(i) + h * width;
      std::copy_n(both, width, query);
      std::copy_n(both + width, width, memory.gate_rows.row(i) + h * width);
      finish_head(args, weights.q_norm, row, query);
    }
  });
}

// beta = sigmoid(b), log_decay = -exp(A_log) softplus(a + dt_bias), all [rows, Hv].
void decay_and_beta(Context& context, const DeltaNetWeights& weights, std::int64_t n_rows,
                    MixerMemory& memory) {
  const auto n_heads = static_cast<std::int64_t>(weights.decay.size());
  memory.log_decay.reshape(n_rows, n_heads);
  memory.beta.reshape(n_rows, n_heads);
  for_rows(context, n_rows, [&](std::int64_t row) {
    for (std::int64_t h = 0; h < n_heads; ++h) {
      const auto i = static_cast<std::size_t>(h);
      memory.log_decay.row(row)[h] =
          -weights.decay[i] * softplus(memory.a.at(row, h) + weights.dt_bias[i]);
      memory.beta.row(row)[h] = 1.0f / (1.0f + std::exp(-memory.b.at(row, h)));
    }
  });
}

}  // namespace

void attention_mixer(Context& context, const AttentionWeights& weights, const MixerArgs& args,
                     MixerMemory& memory, Tiles& out) {
  const TextConfig& config = args.config;
  apply(context, args.queried, {{weights.q, memory.projected}});
  apply(context, args.all, {{weights.k, memory.keys}, {weights.v, memory.values}});
  to_matrix(context.pool, memory.projected, memory.projected_rows);
  to_matrix(context.pool, memory.keys, memory.key_rows);
  to_matrix(context.pool, memory.values, memory.value_rows);

  split_queries(context, weights, args, memory);
  for_rows(context, memory.key_rows.rows(), [&](std::int64_t row) {
    for (std::int64_t h = 0; h < config.n_kv_heads; ++h) {
      finish_head(args, weights.k_norm, row, memory.key_rows.row(row) + h * config.head_dim);
    }
  });
  attention(context,
            {.q = memory.heads,
             .k = memory.key_rows,
             .v = memory.value_rows,
             .n_heads = config.n_heads,
             .n_kv_heads = config.n_kv_heads,
             .head_dim = config.head_dim,
             .runs = args.plan.runs,
             .tiles = args.wanted.tiles},
            memory.core);
  for_rows(context, memory.core.rows(), [&](std::int64_t i) {
    float* core = memory.core.row(i);
    sigmoid_multiply(memory.gate_rows.row(i), core, core, memory.core.cols());
  });
  to_tiles(context.pool, memory.core, memory.projected);
  apply(context, memory.projected, {{weights.o, out}});
}

void delta_net_mixer(Context& context, const DeltaNetWeights& weights, const MixerArgs& args,
                     MixerMemory& memory, Tiles& out) {
  const TextConfig& config = args.config;
  const auto eps = static_cast<float>(config.rms_norm_eps);
  apply(context, args.all,
        {{weights.qkv, memory.projected}, {weights.a, memory.a}, {weights.b, memory.b}});
  apply(context, args.queried, {{weights.z, memory.gates}});
  to_matrix(context.pool, memory.projected, memory.projected_rows);
  to_matrix(context.pool, memory.gates, memory.gate_rows);

  causal_conv(context, memory.projected_rows, weights.taps, args.plan.runs, memory.heads);
  const float query_scale = planted(EngineFault::kUnscaledDeltaQuery)
                                ? 1.0f
                                : 1.0f / std::sqrt(static_cast<float>(config.key_head_dim));
  for_rows(context, memory.heads.rows(), [&](std::int64_t row) {
    for (std::int64_t h = 0; h < 2 * config.n_key_heads; ++h) {
      const float scale = h < config.n_key_heads ? query_scale : 1.0f;
      unit_norm_head(memory.heads.row(row) + h * config.key_head_dim, config.key_head_dim, scale);
    }
  });
  decay_and_beta(context, weights, memory.heads.rows(), memory);
  delta_rule(context,
             {.qkv = memory.heads,
              .log_decay = memory.log_decay,
              .beta = memory.beta,
              .n_key_heads = config.n_key_heads,
              .n_value_heads = config.n_value_heads,
              .key_dim = config.key_head_dim,
              .value_dim = config.value_head_dim,
              .runs = args.plan.runs,
              .slots = args.plan.slots},
             memory.core);

  memory.gated.reshape(memory.gate_rows.rows(), config.value_dim());
  for_rows(context, memory.gated.rows(), [&](std::int64_t i) {
    const float* core = memory.core.row(args.wanted.rows[static_cast<std::size_t>(i)]);
    for (std::int64_t h = 0; h < config.n_value_heads; ++h) {
      const std::int64_t at = h * config.value_head_dim;
      gated_rms_norm_head(core + at, memory.gate_rows.row(i) + at, weights.norm, eps,
                          memory.gated.row(i) + at);
    }
  });
  to_tiles(context.pool, memory.gated, memory.projected);
  apply(context, memory.projected, {{weights.out, out}});
}

}  // namespace jemm::cpu

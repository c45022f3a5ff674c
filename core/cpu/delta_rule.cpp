// The chunks of the delta rule, head by head.
#include "cpu/delta_rule.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "cpu/vector_math.h"
#include "engine/faults.h"

namespace jemm::cpu {
namespace {

constexpr std::int64_t kChunk = 64;

// ahead[i][j] *= D_ij for j <= i, 0 behind; below[i][j] *= beta_i D_ij for j < i; of the first n
// rows. What stands in the others meets only zeros of U.
JEMM_CLONES
void apply_decay(std::int64_t n, const double* cumulated, const float* beta, float* ahead,
                 float* below) {
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < kChunk; ++j) {
      const float decay = vector_exp(static_cast<float>(cumulated[i] - cumulated[j]));
      const float a = ahead[i * kChunk + j] * decay;
      ahead[i * kChunk + j] = j <= i ? a : 0.0f;
      below[i * kChunk + j] = below[i * kChunk + j] * decay * beta[i];
    }
  }
}

// Solves (I + strictly lower part of `below`) U = U in place for the first n rows of U
// [64, width], row after row.
JEMM_CLONES
void solve_unit_lower(const float* below, std::int64_t n, std::int64_t width, float* u) {
  constexpr std::int64_t kStripe = 64;  // columns whose sums stay in registers
  for (std::int64_t c0 = 0; c0 < width; c0 += kStripe) {
    const std::int64_t stripe = std::min(kStripe, width - c0);
    float sum[kStripe];
    for (std::int64_t i = 1; i < n; ++i) {
      float* row = u + i * width + c0;
      if (stripe == kStripe) {
        for (std::int64_t c = 0; c < kStripe; ++c) sum[c] = row[c];
        for (std::int64_t j = 0; j < i; ++j) {
          const float factor = below[i * kChunk + j];
          const float* other = u + j * width + c0;
          for (std::int64_t c = 0; c < kStripe; ++c) sum[c] -= factor * other[c];
        }
        for (std::int64_t c = 0; c < kStripe; ++c) row[c] = sum[c];
      } else {
        for (std::int64_t j = 0; j < i; ++j) {
          const float factor = below[i * kChunk + j];
          const float* other = u + j * width + c0;
          for (std::int64_t c = 0; c < stripe; ++c) row[c] -= factor * other[c];
        }
      }
    }
  }
}

JEMM_CLONES
void scale_into(const float* x, float factor, std::int64_t n, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * factor;
}

// y = x * factor - y
JEMM_CLONES
void scale_minus(const float* x, float factor, std::int64_t n, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * factor - y[i];
}

// rows[d][i] *= factors[i]
JEMM_CLONES
void scale_columns(float* rows, std::int64_t n_rows, const float* factors) {
  for (std::int64_t d = 0; d < n_rows; ++d) {
    for (std::int64_t i = 0; i < kChunk; ++i) rows[d * kChunk + i] *= factors[i];
  }
}

// What goes wrong with a state at a split, in builds that can plant it.
void plant_state_fault(float* state, std::int64_t n) {
  if (planted(EngineFault::kStaleState)) std::fill_n(state, n, 0.0f);
  if (!planted(EngineFault::kBf16State)) return;
  for (std::int64_t i = 0; i < n; ++i) {
    state[i] = std::bit_cast<float>((std::bit_cast<std::uint32_t>(state[i]) + 0x8000U) & ~0xFFFFU);
  }
}

}  // namespace

// Memory of one chunk.
struct DeltaRule::Chunk {
  Chunk(float* memory, std::int64_t key_dim, std::int64_t value_dim)
      : q(memory),
        k(q + kChunk * key_dim),
        k_transposed(k + kChunk * key_dim),
        ahead(k_transposed + kChunk * key_dim),
        below(ahead + kChunk * kChunk),
        u(below + kChunk * kChunk),
        out(u + kChunk * value_dim) {}

  float* q;             // [64, Dk]
  float* k;             // [64, Dk]
  float* k_transposed;  // [Dk, 64]
  float* ahead;         // [64, 64]  D_ij q_i.k_j
  float* below;         // [64, 64]  beta_i D_ij k_i.k_j
  float* u;             // [64, Dv]
  float* out;           // [64, Dv]
};

DeltaRule::DeltaRule(Products& products, std::int64_t key_dim, std::int64_t value_dim)
    : key_dim_(key_dim),
      value_dim_(value_dim),
      rows_by_rows_(products.get({kChunk, key_dim, kChunk})),
      rows_by_state_(products.get({kChunk, key_dim, value_dim})),
      rows_by_values_(products.get({kChunk, kChunk, value_dim, true})),
      state_update_(products.get({key_dim, kChunk, value_dim, true})) {}

std::int64_t DeltaRule::scratch_floats() const {
  return kChunk * (3 * key_dim_ + 2 * kChunk + 2 * value_dim_);
}

void DeltaRule::run(int worker, const DeltaRows& rows, float* state, float* scratch) const {
  const Chunk chunk(scratch, key_dim_, value_dim_);
  for (std::int64_t begin = 0; begin < rows.n_rows;) {
    const std::int64_t to_boundary = kChunk - (rows.n_before + begin) % kChunk;
    const std::int64_t n = std::min(to_boundary, rows.n_rows - begin);
    run_chunk(worker, rows, begin, n, state, chunk);
    begin += n;
  }
}

void DeltaRule::run_chunk(int worker, const DeltaRows& rows, std::int64_t begin, std::int64_t n,
                          float* state, const Chunk& chunk) const {
  double cumulated[kChunk];
  float beta[kChunk], decay_from_start[kChunk], decay_to_end[kChunk];
  double sum = 0;
  for (std::int64_t i = 0; i < kChunk; ++i) {
    const std::int64_t gate = (begin + i) * rows.gate_stride;
    if (i < n) sum += static_cast<double>(rows.log_decay[gate]);
    beta[i] = i < n ? rows.beta[gate] : 0.0f;
    cumulated[i] = sum;
    decay_from_start[i] = vector_exp(static_cast<float>(sum));
  }
  for (std::int64_t i = 0; i < kChunk; ++i) {
    decay_to_end[i] = vector_exp(static_cast<float>(sum - cumulated[i]));
  }

  for (std::int64_t i = 0; i < kChunk; ++i) {
    const std::int64_t from = (begin + std::min(i, n - 1)) * rows.qkv_stride;
    const float keep = i < n ? 1.0f : 0.0f;
    scale_into(rows.q + from, keep, key_dim_, chunk.q + i * key_dim_);
    scale_into(rows.k + from, keep, key_dim_, chunk.k + i * key_dim_);
  }
  transpose(chunk.k, key_dim_, kChunk, key_dim_, chunk.k_transposed, kChunk);
  rows_by_rows_.run(worker, chunk.q, chunk.k_transposed, chunk.ahead);
  rows_by_rows_.run(worker, chunk.k, chunk.k_transposed, chunk.below);
  apply_decay(n, cumulated, beta, chunk.ahead, chunk.below);

  for (std::int64_t i = 0; i < kChunk; ++i) {
    float* k = chunk.k + i * key_dim_;
    float* q = chunk.q + i * key_dim_;
    scale_into(k, beta[i] * decay_from_start[i], key_dim_, k);
    scale_into(q, decay_from_start[i], key_dim_, q);
  }
  rows_by_state_.run(worker, chunk.k, state, chunk.u);
  for (std::int64_t i = 0; i < kChunk; ++i) {
    const float* v = rows.v + (begin + std::min(i, n - 1)) * rows.qkv_stride;
    scale_minus(v, beta[i], value_dim_, chunk.u + i * value_dim_);
  }
  solve_unit_lower(chunk.below, n, value_dim_, chunk.u);

  rows_by_state_.run(worker, chunk.q, state, chunk.out);
  rows_by_values_.run(worker, chunk.ahead, chunk.u, chunk.out);
  for (std::int64_t i = 0; i < n; ++i) {
    std::copy_n(chunk.out + i * value_dim_, value_dim_, rows.out + (begin + i) * rows.out_stride);
  }

  scale_columns(chunk.k_transposed, key_dim_, decay_to_end);
  scale_into(state, decay_from_start[kChunk - 1], key_dim_ * value_dim_, state);
  state_update_.run(worker, chunk.k_transposed, chunk.u, state);
}

void delta_rule(Context& context, const DeltaRuleArgs& args, Matrix& out) {
  const std::int64_t key_width = args.n_key_heads * args.key_dim;
  const std::int64_t state_size = args.key_dim * args.value_dim;
  const DeltaRule rule(context.products, args.key_dim, args.value_dim);
  out.reshape(args.qkv.rows(), args.n_value_heads * args.value_dim);
  context.pool.parallel_for(args.n_value_heads, [&](std::int64_t head, int worker) {
    const std::int64_t key_head = head / (args.n_value_heads / args.n_key_heads);
    float* scratch =
        context.worker_floats(worker, rule.scratch_floats() + args.slots.n_slots * state_size);
    float* states = scratch + rule.scratch_floats();
    for (std::size_t i = 0; i < args.runs.size(); ++i) {
      const Run& run = args.runs[i];
      float* state = states + args.slots.slot[i] * state_size;
      if (run.parent < 0) {
        std::fill_n(state, state_size, 0.0f);
      } else {
        const float* before =
            states + args.slots.slot[static_cast<std::size_t>(run.parent)] * state_size;
        if (before != state) std::copy_n(before, state_size, state);
        plant_state_fault(state, state_size);
      }
      const float* qkv = args.qkv.row(run.row_begin);
      rule.run(worker,
               {.q = qkv + key_head * args.key_dim,
                .k = qkv + key_width + key_head * args.key_dim,
                .v = qkv + 2 * key_width + head * args.value_dim,
                .qkv_stride = args.qkv.cols(),
                .log_decay = args.log_decay.row(run.row_begin) + head,
                .beta = args.beta.row(run.row_begin) + head,
                .gate_stride = args.n_value_heads,
                .out = out.row(run.row_begin) + head * args.value_dim,
                .out_stride = out.cols(),
                .n_rows = run.n_rows,
                .n_before = run.n_before},
               state, scratch);
    }
  });
}

}  // namespace jemm::cpu

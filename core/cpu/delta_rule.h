// The gated delta rule: a recurrent state per head, computed in chunks of 64 rows.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/context.h"
#include "cpu/tiles.h"
#include "plan/runs.h"

namespace jemm::cpu {

/// Rows of one head. Strides in floats from row to row.
struct DeltaRows {
  const float* q = nullptr;  // [n_rows, Dk], unit length, scaled by 1 / sqrt(Dk)
  const float* k = nullptr;  // [n_rows, Dk], unit length
  const float* v = nullptr;  // [n_rows, Dv]
  std::int64_t qkv_stride = 0;
  const float* log_decay = nullptr;  // [n_rows], at most 0
  const float* beta = nullptr;       // [n_rows], 0 to 1
  std::int64_t gate_stride = 0;
  float* out = nullptr;  // [n_rows, Dv]
  std::int64_t out_stride = 0;
  std::int64_t n_rows = 0;
  std::int64_t n_before = 0;  // the first row's place; chunks end at places that 64 divides
};

/// One head's state S [Dk, Dv] over rows t:
///   S = exp(log_decay_t) S;  S += k_t (beta_t (v_t - S^T k_t))^T;  out_t = S^T q_t.
/// In a chunk with c_i = log_decay_1 + ... + log_decay_i (in double) and D_ij = exp(c_i - c_j):
///   (I + tril(beta_i D_ij k_i.k_j, -1)) U = beta_i v_i - (beta_i exp(c_i) k_i)^T S
///   out_i = (exp(c_i) q_i)^T S + sum_{j<=i} D_ij (q_i.k_j) U_j
///   S = exp(c_last) S + sum_j exp(c_last - c_j) k_j U_j^T
/// Chunks are counted from the root's start, as in the reference (torch_chunk_gated_delta_rule);
/// a chunk with fewer rows is filled up with rows that change nothing. All else is float32.
class DeltaRule {
 public:
  DeltaRule(Products& products, std::int64_t key_dim, std::int64_t value_dim);

  std::int64_t scratch_floats() const;
  /// state [Dk, Dv]: in, that before the first row; out, that after the last.
  void run(int worker, const DeltaRows& rows, float* state, float* scratch) const;

 private:
  struct Chunk;
  void run_chunk(int worker, const DeltaRows& rows, std::int64_t begin, std::int64_t n,
                 float* state, const Chunk& chunk) const;

  std::int64_t key_dim_, value_dim_;
  const Product& rows_by_rows_;    // [64, Dk] [Dk, 64]
  const Product& rows_by_state_;   // [64, Dk] [Dk, Dv]
  const Product& rows_by_values_;  // += [64, 64] [64, Dv]
  const Product& state_update_;    // += [Dk, 64] [64, Dv]
};

/// All heads of a layer over a forest.
struct DeltaRuleArgs {
  const Matrix& qkv;             // [rows, Hk Dk + Hk Dk + Hv Dv], q and k as DeltaRows wants them
  const Matrix& log_decay;       // [rows, Hv]
  const Matrix& beta;            // [rows, Hv]
  std::int64_t n_key_heads = 0;  // value head h reads key head h / (Hv / Hk)
  std::int64_t n_value_heads = 0;
  std::int64_t key_dim = 0;    // Dk
  std::int64_t value_dim = 0;  // Dv
  const std::vector<Run>& runs;
  const StateSlots& slots;
};
void delta_rule(Context& context, const DeltaRuleArgs& args, Matrix& out);  // [rows, Hv Dv]

}  // namespace jemm::cpu

// Every kernel of the text forward: what it computes, shapes and rounding. Without CUDA's headers.
//
// T is float or __nv_bfloat16. Arithmetic is FP32 unless said otherwise; what is stored as T is
// rounded once, when it is stored. Matrices are row-major; strides count elements. Letters as in
// docs/shapes.md. All pointers are device memory. Launchers throw Error(kDevice); they neither
// allocate nor wait. No kernel uses atomics: equal inputs give equal bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/kernels/stream.h"

namespace jemm::gpu {

// --- rows.cu ---------------------------------------------------------------------------------

/// The residual stream is FP32 whatever T is: x [rows, width] = table [V, width] at token_ids
/// [rows].
template <typename T>
void embed(const T* table, const std::int32_t* token_ids, std::int64_t n_rows, std::int64_t width,
           float* x, StreamHandle stream);

/// to [n, width] = rows of from, whose stride is `from_stride`, at indices [n].
template <typename T>
void gather_rows(const T* from, std::int64_t from_stride, const std::int32_t* indices,
                 std::int64_t n, std::int64_t width, T* to, StreamHandle stream);

/// y = x / sqrt(mean(x^2) + eps) * factor, row by row; x, y [rows, width], factor [width].
template <typename T>
void rms_norm(const float* x, const float* factor, float eps, std::int64_t n_rows,
              std::int64_t width, T* y, StreamHandle stream);

/// logits [rows, 32] = x [rows, width] head [32, width]^T.
void label_logits(const float* x, const float* head, std::int64_t n_rows, std::int64_t width,
                  float* logits, StreamHandle stream);

// --- low_rank.cu, residual.cu ----------------------------------------------------------------

/// Memory that the kernel behind the next ones reads and nothing writes; a multiple of 16 bytes.
struct ReadAhead {
  const void* data = nullptr;
  std::int64_t n_bytes = 0;
};

/// The low-rank updates of up to four layers whose outputs stand side by side: output o of layer p
/// (the first with o < ends[p]) gets sum_j low[row][p rank + j] b[j][o], b having the scale in it.
/// low is rounded to T, as a part of the product that also made the outputs. Sums are FP32; they
/// are added to the rounded output.
template <typename T>
struct LowRank {
  const T* low = nullptr;   // [rows, n_layers rank] of stride `stride`
  std::int64_t stride = 0;  // also of the outputs
  const T* b = nullptr;     // [rank, b_stride]
  std::int64_t b_stride = 0;
  std::int32_t rank = 0;  // 0: no update, low and b unused
  std::int32_t n_layers = 0;
  std::int32_t ends[4] = {};
  ReadAhead ahead = {};  // what BF16's quick kernels bring into the cache as of sm_90
};

/// y [rows, stride], its first `width` columns: y = T(y + update). low may lie in y behind them.
template <typename T>
void add_low_rank(const LowRank<T>& update, std::int64_t n_rows, std::int64_t width, T* y,
                  StreamHandle stream);

/// out [rows, F] = silu(g) u with g, u [rows, F] the first 2 F columns of y + update, y [rows,
/// stride]. BF16: exponential and quotient with the device's quick instructions (some 2^-21).
template <typename T>
void silu_multiply(const LowRank<T>& update, const T* y, std::int64_t n_rows,
                   std::int64_t n_outputs, T* out, StreamHandle stream);

/// x = x + (y + update), then normed = norm(x) factor as rms_norm; x, normed [rows, width], y
/// [rows, stride], factor [width]. Out: T or float.
template <typename T, typename Out>
void add_residual(const LowRank<T>& update, const T* y, std::int64_t n_rows, std::int64_t width,
                  const float* factor, float eps, float* x, Out* normed, StreamHandle stream);

// --- conv.cu ---------------------------------------------------------------------------------

/// The causal depthwise convolution, SiLU, and the unit norm of the query and key heads.
/// c = silu(sum_j taps[j] x[row j of the last W of the chain]); queries and keys are then divided
/// by sqrt(sum over the head of c^2 + 1e-6). x [rows, >= conv_dim], y [rows, conv_dim].
/// previous [rows, W - 1]: the packed rows W - 1, ..., 1 places before, -1 before the chain's
/// start. W is at most 4, heads at most kMaxDeltaHead wide here and in gated_norm.
struct ConvArgs {
  std::int64_t n_rows = 0, x_stride = 0;
  std::int32_t n_key_heads = 0, n_value_heads = 0, key_dim = 0, value_dim = 0;  // Hk Hv Dk Dv
  std::int32_t width = 0;                                                       // W
  const float* taps = nullptr;             // [W, conv_dim], oldest first
  const std::int32_t* previous = nullptr;  // [rows, W - 1]
};
template <typename T>
void causal_conv(const ConvArgs& args, const T* x, T* y, StreamHandle stream);

/// y = norm(core) factor silu(z), a head of Dv at a time: core, y [rows, Hv Dv]; z [rows, >= Hv Dv]
/// of stride z_stride.
template <typename T>
void gated_norm(const T* core, const T* z, std::int64_t z_stride, const float* factor, float eps,
                std::int64_t n_rows, std::int32_t n_heads, std::int32_t head_dim, T* y,
                StreamHandle stream);

// --- delta_prepare_bf16.cu, delta_scan_bf16.cu, delta_f32.cu ----------------------------------

/// Up to 64 rows of one run that end at a multiple of 64 places from the root's start, or at the
/// run's end.
struct DeltaChunk {
  std::int32_t row_begin = 0, n_rows = 0;
};
/// A run's chunks, and where its state comes from and goes to.
struct DeltaRun {
  std::int32_t first_chunk = 0, n_chunks = 0;
  std::int32_t from_slot = -1;  // -1: zero
  std::int32_t to_slot = -1;    // -1: not kept
};

/// The gated delta rule of a layer. With c_i the decays' logarithms summed over the chunk's rows up
/// to i (in double), D_ij = exp(c_i - c_j), s = 1 / sqrt(Dk):
///   prepare, all chunks at once: M = tril(beta_i D_ij k_i.k_j, -1),
///     V' = (I + M)^-1 (beta_i v_i),  K' = (I + M)^-1 (beta_i exp(c_i) k_i),
///     ahead_ij = s D_ij q_i.k_j for j <= i
///   scan, chunk after chunk: U = V' - K' S,  out = s exp(c_i) q_i S + ahead U,
///     S = exp(c_last) S + sum_j exp(c_last - c_j) k_j U_j^T
/// T = float: everything FP32. BF16: sums, decays, the state and the system's blocks of 16 are
/// FP32; larger blocks of its inverse come of TF32 products; the inverse, V', K', ahead, U and the
/// state are rounded to BF16 where they enter the matrix unit.
template <typename T>
struct DeltaArgs {
  std::int32_t n_key_heads = 0, n_value_heads = 0, key_dim = 0, value_dim = 0;
  std::int64_t gate_stride = 0;      // of a and b
  const float* decay = nullptr;      // [Hv] exp(A_log)
  const float* time_bias = nullptr;  // [Hv]
  const DeltaChunk* chunks = nullptr;
  T* solved_v = nullptr;    // [rows, Hv, Dv] V'
  T* solved_k = nullptr;    // [rows, Hv, Dk] K'
  T* ahead = nullptr;       // [rows, Hv, 64]; BF16 leaves blocks of 16 above the diagonal alone
  float* decays = nullptr;  // [rows, Hv, 2] exp(c_i), exp(c_last - c_i)
  float* states = nullptr;  // [slots, Hv, Dk, Dv]
};
inline constexpr std::int32_t kDeltaChunk = 64;
inline constexpr std::int32_t kMaxDeltaHead = 128;  ///< largest Dk and Dv
/// Of a block, at the most, for a T of so many bytes.
constexpr std::size_t delta_shared_bytes(std::size_t element_bytes) {
  return element_bytes == 2 ? 142368 : 151040;
}

/// qkv [rows, conv_dim] as causal_conv leaves it; a, b [rows, Hv] of stride gate_stride.
void delta_prepare(const DeltaArgs<float>& args, std::int64_t n_chunks, const float* qkv,
                   const float* a, const float* b, StreamHandle stream);
void delta_prepare(const DeltaArgs<__nv_bfloat16>& args, std::int64_t n_chunks,
                   const __nv_bfloat16* qkv, const __nv_bfloat16* a, const __nv_bfloat16* b,
                   StreamHandle stream);
/// `runs`: on the device, none of which starts from another. out [rows, Hv Dv].
void delta_scan(const DeltaArgs<float>& args, const DeltaRun* runs, std::int64_t n_runs,
                const float* qkv, float* out, StreamHandle stream);
void delta_scan(const DeltaArgs<__nv_bfloat16>& args, const DeltaRun* runs, std::int64_t n_runs,
                const __nv_bfloat16* qkv, __nv_bfloat16* out, StreamHandle stream);

// --- heads.cu --------------------------------------------------------------------------------

/// cosine, sine [rows, half] of float(position) * frequency[i], the position on axes[i].
void rotary_table(const std::int32_t* positions, const float* frequency, const std::int32_t* axes,
                  std::int64_t n_rows, std::int32_t half, float* cosine, float* sine,
                  StreamHandle stream);

/// Heads out of the fused projection [rows, Hq 2 Dh | Hkv Dh | Hkv Dh]: queries and keys are
/// root-mean-square normalised (factors [Dh]) and their first 2 half dimensions rotated.
struct HeadArgs {
  std::int64_t n_rows = 0, stride = 0;
  std::int32_t n_heads = 0, n_kv_heads = 0, head_dim = 0, half = 0;
  float eps = 0;
  const float* q_factor = nullptr;
  const float* k_factor = nullptr;
  const float* cosine = nullptr;
  const float* sine = nullptr;
};
template <typename T>
void norm_and_rotate(const HeadArgs& args, const T* projected, T* q, T* k, StreamHandle stream);

// --- attention.cu, sm90_attention.cu ---------------------------------------------------------

struct AttentionRun {
  std::int32_t parent = -1, row_begin = 0, n_before = 0;
};
/// Up to kAttentionTileRows queries: rows of one run, in a row.
inline constexpr std::int32_t kAttentionTileRows = 64;
struct AttentionTile {
  std::int32_t run = 0, row_begin = 0, n_rows = 0;
  std::int32_t first_place = 0;  // of its first row in the chain
};

/// out = softmax(q k^T / sqrt(Dh)) v * sigmoid(gate), queries over their chains. Keys in blocks of
/// equal size from the root's start, maximum and sum carried along. T = float: FP32 multiply-adds.
/// BF16: matrix unit, exponentials with the device's quick instruction, probabilities rounded to
/// BF16 before they meet v. Heads of 256 in BF16 have their own kernel on sm_90a.
struct AttentionArgs {
  std::int32_t n_heads = 0, n_kv_heads = 0, head_dim = 0;
  std::int64_t v_stride = 0, gate_stride = 0;
  const AttentionRun* runs = nullptr;
  const AttentionTile* tiles = nullptr;
  std::int64_t n_tiles = 0;
};
inline constexpr std::int32_t kMaxAttentionHead = 256;
/// What heads are padded to outside the kernel of sm_90a.
constexpr std::int32_t padded_attention_head(std::int32_t head_dim) {
  return head_dim <= 32 ? 32 : head_dim <= 128 ? 128 : kMaxAttentionHead;
}
/// Of a block there, for a T of so many bytes: 64 queries, keys, values and scores, and the keys'
/// rows.
constexpr std::size_t attention_shared_bytes(std::size_t element_bytes, std::int32_t head_dim) {
  const auto row = static_cast<std::size_t>(padded_attention_head(head_dim) + 8);
  return 64 * (3 * row + 64 + 8) * element_bytes + 2 * 64 * sizeof(std::int32_t);
}
/// q [rows, Hq Dh], k [rows, Hkv Dh], v [rows, Hkv Dh] of v_stride, gates: head h's at h 2 Dh of a
/// row of gate_stride; out [rows, Hq Dh].
template <typename T>
void attention(const AttentionArgs& args, const T* q, const T* k, const T* v, const T* gates,
               T* out, StreamHandle stream);

}  // namespace jemm::gpu

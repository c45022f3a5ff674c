// Causal attention of query rows over their chains, with grouped key and value heads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpu/context.h"
#include "cpu/tiles.h"
#include "plan/runs.h"

namespace jemm::cpu {

/// Up to 64 queries of one run, computed together.
struct QueryTile {
  struct Query {
    std::int64_t index = 0;  // row of q and out
    std::int64_t place = 0;  // in the chain; the query sees the keys up to its own
  };
  std::size_t run = 0;
  std::vector<Query> queries;
};

/// Tiles for the queries that stand at the packed rows `rows`, in any order.
std::vector<QueryTile> make_query_tiles(const std::vector<Run>& runs,
                                        std::span<const std::int64_t> rows);

struct AttentionArgs {
  const Matrix& q;              // [queries, Hq Dh], normalised and rotated
  const Matrix& k;              // [rows, Hkv Dh], normalised and rotated
  const Matrix& v;              // [rows, Hkv Dh]
  std::int64_t n_heads = 0;     // Hq; head h reads key head h / (Hq / Hkv)
  std::int64_t n_kv_heads = 0;  // Hkv
  std::int64_t head_dim = 0;    // Dh
  const std::vector<Run>& runs;
  const std::vector<QueryTile>& tiles;
};

/// out = softmax(q k^T / sqrt(Dh)) v: [queries, Hq Dh], float32. Keys are taken in blocks of 64
/// counted from the root's start, with the softmax's maximum and sum carried from block to block,
/// so that a query's result depends on its chain alone.
void attention(Context& context, const AttentionArgs& args, Matrix& out);

}  // namespace jemm::cpu

// Blocks of scores, running softmax, sums of values.
#include "cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "cpu/vector_math.h"
#include "engine/faults.h"

namespace jemm::cpu {
namespace {

constexpr std::int64_t kBlock = 64;  // keys

// The running softmax of 64 queries.
struct Softmax {
  float maximum[kLanes];
  float sum[kLanes];
};

// One block of scores [64 keys, 64 queries] becomes exp(score * scale - maximum); keys behind
// `last_key` of their query become 0. `correction` is what earlier sums must be multiplied by.
JEMM_CLONES
void softmax_block(float* scores, const std::int32_t* last_key, float scale, Softmax& softmax,
                   float* correction) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  float maximum[kLanes], sum[kLanes];
  for (std::int64_t i = 0; i < kLanes; ++i) maximum[i] = softmax.maximum[i];
  for (std::int32_t key = 0; key < kBlock; ++key) {
    float* row = scores + key * kLanes;
    for (std::int64_t i = 0; i < kLanes; ++i) {
      const float score = key <= last_key[i] ? row[i] * scale : kMinusInfinity;
      row[i] = score;
      maximum[i] = score > maximum[i] ? score : maximum[i];
    }
  }
  for (std::int64_t i = 0; i < kLanes; ++i) sum[i] = 0;
  for (std::int64_t key = 0; key < kBlock; ++key) {
    float* row = scores + key * kLanes;
    for (std::int64_t i = 0; i < kLanes; ++i) {
      row[i] = vector_exp(row[i] - maximum[i]);
      sum[i] += row[i];
    }
  }
  for (std::int64_t i = 0; i < kLanes; ++i) {
    correction[i] = vector_exp(softmax.maximum[i] - maximum[i]);
    softmax.sum[i] = softmax.sum[i] * correction[i] + sum[i];
    softmax.maximum[i] = maximum[i];
  }
}

// x[d][i] *= factors[i]
JEMM_CLONES
void scale_lanes(float* x, std::int64_t n, const float* factors) {
  for (std::int64_t d = 0; d < n; ++d) {
    for (std::int64_t i = 0; i < kLanes; ++i) x[d * kLanes + i] *= factors[i];
  }
}

// What one task, all query heads of a key head for one tile, keeps in its worker's memory.
class Task {
 public:
  Task(Context& context, const AttentionArgs& args, const QueryTile& tile, std::int64_t kv_head,
       int worker)
      : args_(args),
        tile_(tile),
        kv_head_(kv_head),
        group_(args.n_heads / args.n_kv_heads),
        worker_(worker),
        keys_(context.worker_floats(worker, floats(args))),
        values_(keys_ + kBlock * args.head_dim),
        queries_(values_ + kBlock * args.head_dim),
        sums_(queries_ + group_ * kLanes * args.head_dim),
        scores_(sums_ + group_ * kLanes * args.head_dim),
        softmax_(static_cast<std::size_t>(group_)),
        score_product_(context.products.get({kBlock, args.head_dim, kLanes})),
        value_product_(context.products.get({args.head_dim, kBlock, kLanes, true})) {}

  void run(Matrix& out) {
    load_queries();
    std::int64_t n_keys = 0;
    for (const QueryTile::Query& query : tile_.queries) n_keys = std::max(n_keys, query.place + 1);
    const std::vector<std::int64_t> chain = chain_rows(args_.runs, tile_.run);
    for (std::int64_t first = 0; first < n_keys; first += kBlock) {
      const std::int64_t n = std::min(kBlock, n_keys - first);
      load_keys({chain.data() + first, static_cast<std::size_t>(n)});
      add_block(first);
    }
    store(out);
  }

 private:
  static std::int64_t floats(const AttentionArgs& args) {
    const std::int64_t group = args.n_heads / args.n_kv_heads;
    return (2 + 2 * group) * args.head_dim * kBlock + kBlock * kLanes;
  }
  float* queries(std::int64_t head) { return queries_ + head * kLanes * args_.head_dim; }
  float* sums(std::int64_t head) { return sums_ + head * kLanes * args_.head_dim; }

  void load_queries() {
    const std::int64_t width = args_.head_dim;
    std::fill_n(queries_, group_ * kLanes * width, 0.0f);
    std::fill_n(sums_, group_ * kLanes * width, 0.0f);
    for (std::int64_t h = 0; h < group_; ++h) {
      Softmax& softmax = softmax_[static_cast<std::size_t>(h)];
      std::fill_n(softmax.maximum, kLanes, -std::numeric_limits<float>::infinity());
      std::fill_n(softmax.sum, kLanes, 0.0f);
      for (std::size_t i = 0; i < tile_.queries.size(); ++i) {
        const float* q = args_.q.row(tile_.queries[i].index) + (kv_head_ * group_ + h) * width;
        transpose(q, width, 1, width, queries(h) + i, kLanes);
      }
    }
  }

  // Keys [64, Dh] and values [Dh, 64] of the chain's next rows; rows behind its end are 0.
  void load_keys(std::span<const std::int64_t> rows) {
    const std::int64_t width = args_.head_dim;
    if (rows.size() < static_cast<std::size_t>(kBlock)) {
      std::fill_n(keys_, kBlock * width, 0.0f);
      std::fill_n(values_, kBlock * width, 0.0f);
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::copy_n(args_.k.row(rows[i]) + kv_head_ * width, width,
                  keys_ + static_cast<std::int64_t>(i) * width);
      const float* v = args_.v.row(rows[i]) + kv_head_ * width;
      for (std::int64_t d = 0; d < width; ++d)
        values_[d * kBlock + static_cast<std::int64_t>(i)] = v[d];
    }
  }

  void add_block(std::int64_t first) {
    std::int32_t last_key[kLanes] = {};  // lanes without a query see the block's first key
    for (std::size_t i = 0; i < tile_.queries.size(); ++i) {
      const std::int64_t last = tile_.queries[i].place - first;
      last_key[i] = static_cast<std::int32_t>(std::clamp<std::int64_t>(last, -1, kBlock));
    }
    const float scale = planted(EngineFault::kUnscaledQuery)
                            ? 1.0f
                            : 1.0f / std::sqrt(static_cast<float>(args_.head_dim));
    float correction[kLanes];
    for (std::int64_t h = 0; h < group_; ++h) {
      score_product_.run(worker_, keys_, queries(h), scores_);
      softmax_block(scores_, last_key, scale, softmax_[static_cast<std::size_t>(h)], correction);
      scale_lanes(sums(h), args_.head_dim, correction);
      value_product_.run(worker_, values_, scores_, sums(h));
    }
  }

  void store(Matrix& out) {
    const std::int64_t width = args_.head_dim;
    for (std::int64_t h = 0; h < group_; ++h) {
      for (std::size_t i = 0; i < tile_.queries.size(); ++i) {
        const float inverse = 1.0f / softmax_[static_cast<std::size_t>(h)].sum[i];
        float* o = out.row(tile_.queries[i].index) + (kv_head_ * group_ + h) * width;
        const float* sum = sums(h) + i;
        for (std::int64_t d = 0; d < width; ++d) o[d] = sum[d * kLanes] * inverse;
      }
    }
  }

  const AttentionArgs& args_;
  const QueryTile& tile_;
  std::int64_t kv_head_, group_;
  int worker_;
  float* keys_;                   // [64, Dh]
  float* values_;                 // [Dh, 64]
  float* queries_;                // [group, Dh, 64]
  float* sums_;                   // [group, Dh, 64]
  float* scores_;                 // [64 keys, 64 queries]
  std::vector<Softmax> softmax_;  // [group]
  const Product& score_product_;
  const Product& value_product_;
};

}  // namespace

std::vector<QueryTile> make_query_tiles(const std::vector<Run>& runs,
                                        std::span<const std::int64_t> rows) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rows[a] < rows[b]; });
  std::vector<QueryTile> tiles;
  for (const std::size_t i : order) {
    const std::size_t run = run_of_row(runs, rows[i]);
    if (tiles.empty() || tiles.back().run != run ||
        tiles.back().queries.size() == static_cast<std::size_t>(kLanes)) {
      tiles.push_back({.run = run, .queries = {}});
    }
    const std::int64_t place = runs[run].n_before + rows[i] - runs[run].row_begin;
    tiles.back().queries.push_back({.index = static_cast<std::int64_t>(i), .place = place});
  }
  return tiles;
}

void attention(Context& context, const AttentionArgs& args, Matrix& out) {
  out.reshape(args.q.rows(), args.n_heads * args.head_dim);
  const auto n_tiles = static_cast<std::int64_t>(args.tiles.size());
  context.pool.parallel_for(n_tiles * args.n_kv_heads, [&](std::int64_t task, int worker) {
    // From the last tile on: a long prompt's last tiles are its longest tasks.
    const auto tile = static_cast<std::size_t>(n_tiles - 1 - task / args.n_kv_heads);
    Task(context, args, args.tiles[tile], task % args.n_kv_heads, worker).run(out);
  });
}

}  // namespace jemm::cpu

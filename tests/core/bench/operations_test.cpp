// The operation count against one worked out by hand.
#include <doctest/doctest.h>

#include <vector>

#include "bench/operations.h"

namespace jemm {
namespace {

/// One layer of each kind; every size another, so that an exchange would show.
ModelConfig small_config() {
  ModelConfig config;
  config.text = {.vocab_size = 100,
                 .hidden_size = 8,
                 .intermediate_size = 12,
                 .layer_types = {LayerType::kLinearAttention, LayerType::kFullAttention},
                 .rms_norm_eps = 1e-6,
                 .n_heads = 4,
                 .n_kv_heads = 2,
                 .head_dim = 6,
                 .rotary_dim = 2,
                 .rope_theta = 1e4,
                 .mrope_section = {1, 0, 0},
                 .n_key_heads = 1,
                 .n_value_heads = 3,
                 .key_head_dim = 5,
                 .value_head_dim = 7,
                 .conv_width = 4};
  config.vision = {.depth = 1,
                   .hidden_size = 10,
                   .intermediate_size = 14,
                   .n_heads = 2,
                   .n_channels = 3,
                   .patch_size = 16,
                   .temporal_patch_size = 2,
                   .merge_size = 2,
                   .n_position_embeddings = 4,
                   .out_hidden_size = 8,
                   .rope_theta = 1e4};
  return config;
}

}  // namespace

TEST_CASE("what a forest asks for: rows, rows seen, rows read") {
  Forest forest;
  const std::vector<std::int32_t> tokens = {1, 2, 3};
  const std::int32_t root = forest.add(-1, tokens);
  forest.read_last_row(forest.add(root, std::vector<std::int32_t>{4, 5}));
  forest.read_last_row(forest.add(root, std::vector<std::int32_t>{6}));
  Work work;
  work.add(forest);
  work.add(forest);
  CHECK(work.pass_rows == std::vector<std::int64_t>{6, 6});
  CHECK(work.n_rows() == 12);
  CHECK(work.n_read == 4);
  CHECK(work.n_seen == 2 * (1 + 2 + 3 + 4 + 5 + 4));
}

TEST_CASE("operations of a small model") {
  const OperationCount count(small_config());
  const double mlp = 3 * 8 * 12;
  const double linear = 8 * (2 * 5 + 21) + 8 * 21 + 2 * 8 * 3 + 21 * 8 + 4 * (2 * 5 + 21);
  const double full = 8 * (4 * 12) + 2 * 8 * 12 + 24 * 8;
  const double a_row = 2 * (2 * mlp + linear + full) + 7 * 3 * 5 * 7;
  CHECK(count.operations({.pass_rows = {1}}) == a_row);
  CHECK(count.operations({.pass_rows = {2, 3}}) == 5 * a_row);
  CHECK(count.operations({.pass_rows = {}, .n_read = 1}) == 2 * 32 * 8);
  CHECK(count.operations({.pass_rows = {}, .n_seen = 1}) == 4 * 4 * 6);
  const double block = 30 * 10 + 10 * 10 + 2 * 10 * 14 + 10 * 3 * 2 * 256;
  const double merger = 40 * 40 + 8 * 40;
  CHECK(count.operations({.pass_rows = {}, .n_patches = 4}) == 4 * 2 * block + 2 * merger);
  CHECK(count.operations({.pass_rows = {}, .n_patches_seen = 1}) == 4 * 10);
}

TEST_CASE("every patch sees those of its own image") {
  const ImagePatches images[] = {{.grid_thw = {1, 2, 4}, .values = {}},
                                 {.grid_thw = {1, 2, 2}, .values = {}}};
  Work work;
  work.add(std::span<const ImagePatches>(images));
  CHECK(work.n_patches == 12);
  CHECK(work.n_patches_seen == 8 * 8 + 4 * 4);
}

}  // namespace jemm

// The vision tower's parts against double computations, and that an image depends on itself alone.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "core/cpu/small_checkpoint.h"
#include "core/cpu/support.h"
#include "cpu/elementwise.h"
#include "cpu/norms.h"
#include "cpu/vision.h"
#include "cpu/vision_grid.h"
#include "engine/stages.h"

namespace jemm {
namespace {

using namespace cpu;

std::vector<float> uniform(std::size_t n, std::uint32_t seed, float low, float high) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> distribution(low, high);
  std::vector<float> values(n);
  for (float& x : values) x = distribution(random);
  return values;
}

// The learned position of a patch in double: both coordinates stretched so that the corners of
// image and grid coincide, then bilinear.
double position(const std::vector<float>& grid, std::int64_t side, std::int64_t width,
                const PatchPlace& place, std::int64_t channel) {
  const auto stretched = [&](std::int32_t i, std::int32_t n) {
    return static_cast<double>(i) * static_cast<double>(side - 1) / static_cast<double>(n - 1);
  };
  const double y = stretched(place.row, place.n_rows), x = stretched(place.column, place.n_columns);
  double sum = 0;
  for (std::int64_t r = 0; r < side; ++r) {
    for (std::int64_t c = 0; c < side; ++c) {
      const double weight = std::max(0.0, 1 - std::abs(y - static_cast<double>(r))) *
                            std::max(0.0, 1 - std::abs(x - static_cast<double>(c)));
      const auto at = static_cast<std::size_t>((r * side + c) * width + channel);
      if (weight > 0) sum += weight * static_cast<double>(grid[at]);
    }
  }
  return sum;
}

TEST_CASE("learned positions are resampled corner to corner") {
  constexpr std::int64_t kSide = 48, kWidth = 3;
  const std::vector<float> grid = uniform(kSide * kSide * kWidth, 1, -1, 1);
  Context context(2);
  for (const auto& [rows, columns] : std::vector<std::pair<std::int32_t, std::int32_t>>{
           {2, 2}, {4, 6}, {2, 50}, {48, 48}, {47, 49}}) {
    CAPTURE(rows);
    CAPTURE(columns);
    const std::vector<PatchPlace> places = patch_places(rows, columns, rows % 2 == 0 ? 2 : 1);
    REQUIRE(places.size() == static_cast<std::size_t>(rows * columns));
    Tiles x;
    x.reshape(rows * columns, kWidth);
    std::fill_n(x.block(0), x.n_blocks() * kWidth * kLanes, 0.25f);
    add_positions(context, grid, kSide, places, x);
    double worst = 0;
    for (std::int64_t i = 0; i < x.rows(); ++i) {
      const PatchPlace& place = places[static_cast<std::size_t>(i)];
      for (std::int64_t c = 0; c < kWidth; ++c) {
        const double got = static_cast<double>(x.at(i, c)) - 0.25;
        worst = std::max(worst, std::abs(got - position(grid, kSide, kWidth, place, c)));
      }
    }
    CHECK(worst <= 2e-5);  // a coordinate of up to 47 has 4e-6 of rounding in float32
    for (std::int64_t c = 0; c < kWidth; ++c) {
      CHECK(x.at(0, c) == 0.25f + grid[static_cast<std::size_t>(c)]);
      CHECK(x.at(x.rows() - 1, c) ==
            0.25f + grid[static_cast<std::size_t>((kSide * kSide - 1) * kWidth + c)]);
    }
  }
}

TEST_CASE("patches of a merged row follow each other") {
  const std::vector<PatchPlace> places = patch_places(4, 6, 2);
  const std::vector<std::pair<int, int>> first{{0, 0}, {0, 1}, {1, 0}, {1, 1},
                                               {0, 2}, {0, 3}, {1, 2}};
  for (std::size_t i = 0; i < first.size(); ++i) {
    CHECK(places[i].row == first[i].first);
    CHECK(places[i].column == first[i].second);
  }
  CHECK(places[12].row == 2);
  CHECK(places[12].column == 0);
  CHECK(places.back().row == 3);
  CHECK(places.back().column == 5);
}

TEST_CASE("an axis of one patch falls on the grid's first entry") {
  const AxisTaps taps = axis_taps(0, 1, 48);
  CHECK(taps.entry[0] == 0);
  CHECK(taps.weight[0] == 1);
  CHECK(taps.weight[1] == 0);
}

TEST_CASE("rows turn the first half of the angles, columns the second") {
  VisionConfig config;
  config.hidden_size = 144;
  config.n_heads = 2;  // heads of 72: 18 frequencies an axis
  config.rope_theta = 10000;
  const std::vector<PatchPlace> places{
      {0, 0, 64, 64}, {5, 0, 64, 64}, {0, 7, 64, 64}, {63, 11, 64, 64}};
  RotaryTable table;
  make_patch_rotary(config, places, table);
  REQUIRE(table.cosine.cols() == 36);
  for (std::int64_t p = 0; p < 4; ++p) {
    for (std::int64_t i = 0; i < 36; ++i) {
      const PatchPlace& place = places[static_cast<std::size_t>(p)];
      const double frequency = std::pow(10000.0, -static_cast<double>(i % 18) / 18);
      const double angle = (i < 18 ? place.row : place.column) * frequency;
      CHECK(std::abs(static_cast<double>(table.cosine.row(p)[i]) - std::cos(angle)) <= 1e-5);
      CHECK(std::abs(static_cast<double>(table.sine.row(p)[i]) - std::sin(angle)) <= 1e-5);
    }
  }
}

TEST_CASE("layer norm against double") {
  constexpr std::int64_t kRows = 70, kCols = 97;
  Context context(1);
  const std::vector<float> weight = uniform(kCols, 2, 0.5, 1.5), bias = uniform(kCols, 3, -1, 1);
  Matrix x, y;
  x.reshape(kRows, kCols);
  const std::vector<float> values = uniform(kRows * kCols, 4, 9, 11);  // the mean is most of it
  std::copy(values.begin(), values.end(), x.row(0));
  Tiles tiles, normed;
  to_tiles(context.pool, x, tiles);
  layer_norm(context, tiles, weight, bias, 1e-6f, normed);
  to_matrix(context.pool, normed, y);
  for (std::int64_t r = 0; r < kRows; ++r) {
    double mean = 0, variance = 0;
    for (std::int64_t c = 0; c < kCols; ++c) mean += static_cast<double>(x.row(r)[c]) / kCols;
    for (std::int64_t c = 0; c < kCols; ++c) {
      variance += std::pow(static_cast<double>(x.row(r)[c]) - mean, 2) / kCols;
    }
    for (std::int64_t c = 0; c < kCols; ++c) {
      const auto i = static_cast<std::size_t>(c);
      const double want = (static_cast<double>(x.row(r)[c]) - mean) / std::sqrt(variance + 1e-6) *
                              static_cast<double>(weight[i]) +
                          static_cast<double>(bias[i]);
      CHECK(std::abs(static_cast<double>(y.row(r)[c]) - want) <= 1e-5);
    }
  }
}

TEST_CASE("both forms of GELU against double") {
  std::vector<float> x = uniform(1000, 5, -8, 8);
  x.insert(x.end(), {0.0f, -0.0f, 30.0f, -30.0f, 1e4f, -1e4f});
  std::vector<float> by_tanh = x, by_erf = x;
  gelu_tanh(by_tanh.data(), static_cast<std::int64_t>(x.size()));
  gelu_erf(by_erf.data(), static_cast<std::int64_t>(x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto v = static_cast<double>(x[i]);
    const double inner = std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v);
    const double scale = std::max(1.0, std::abs(v));
    CHECK(std::abs(static_cast<double>(by_tanh[i]) - 0.5 * v * (1 + std::tanh(inner))) <=
          1e-6 * scale);
    CHECK(std::abs(static_cast<double>(by_erf[i]) - 0.5 * v * (1 + std::erf(v / std::sqrt(2.0)))) <=
          1e-6 * scale);
  }
}

struct SmallImage {
  std::array<std::int64_t, 3> grid_thw;
  std::vector<float> values;
};

SmallImage small_image(std::int64_t rows, std::int64_t columns, std::uint32_t seed) {
  return {{1, rows, columns}, uniform(static_cast<std::size_t>(rows * columns * 24), seed, -1, 1)};
}

std::array<std::int32_t, 32> small_labels() {
  std::array<std::int32_t, 32> ids{};
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(37 * i + 5);
  return ids;
}

bool same_bits(const Matrix& a, const Matrix& b) {
  return a.rows() == b.rows() && a.cols() == b.cols() &&
         std::memcmp(a.row(0), b.row(0), static_cast<std::size_t>(a.rows() * a.cols()) * 4) == 0;
}

bool same_bits(const LabelLogits& a, const LabelLogits& b) {
  return std::memcmp(a.data(), b.data(), sizeof a) == 0;
}

TEST_CASE("an image's rows are the same alone and beside others, with one thread and several") {
  const test::SmallCheckpoint checkpoint;
  std::vector<SmallImage> images;
  for (const auto& [rows, columns] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {2, 2}, {6, 4}, {16, 8}, {2, 34}, {18, 20}, {8, 8}}) {
    images.push_back(small_image(rows, columns, static_cast<std::uint32_t>(100 * rows + columns)));
  }
  std::vector<ImagePatches> forward, backward;
  for (const SmallImage& image : images) forward.push_back({image.grid_thw, image.values});
  backward.assign(forward.rbegin(), forward.rend());

  Context one(1), three(3);
  VisionTower tower(checkpoint), fresh(checkpoint);
  const std::vector<Matrix> together = tower.run(one, forward), threads = tower.run(three, forward);
  const std::vector<Matrix> reversed = tower.run(one, backward);
  for (std::size_t i = 0; i < images.size(); ++i) {
    const std::vector<Matrix> alone = fresh.run(one, {{forward[i]}});
    REQUIRE(alone.front().rows() == images[i].grid_thw[1] * images[i].grid_thw[2] / 4);
    CHECK(same_bits(together[i], alone.front()));
    CHECK(same_bits(threads[i], alone.front()));
    CHECK(same_bits(reversed[images.size() - 1 - i], alone.front()));
  }
}

TEST_CASE("patches see the whole image: each value moves every row") {
  const test::SmallCheckpoint checkpoint;
  Context context(1);
  VisionTower tower(checkpoint);
  SmallImage image = small_image(18, 8, 9);
  const std::vector<Matrix> before = tower.run(context, {{{image.grid_thw, image.values}}});
  image.values.back() += 1;  // the second frame of the last patch
  const std::vector<Matrix> after = tower.run(context, {{{image.grid_thw, image.values}}});
  for (std::int64_t row = 0; row < before[0].rows(); ++row) {
    CHECK(std::memcmp(before[0].row(row), after[0].row(row), 24 * sizeof(float)) != 0);
  }
}

TEST_CASE("patches that are no grid are refused") {
  const auto engine = make_cpu_engine(std::make_shared<test::SmallCheckpoint>(), small_labels(), 1);
  const SmallImage good = small_image(2, 4, 1);
  for (const std::array<std::int64_t, 3> grid : {std::array<std::int64_t, 3>{1, 2, 2},
                                                 {1, 4, 4},
                                                 {2, 2, 2},
                                                 {1, 1, 8},
                                                 {1, 8, 1},
                                                 {0, 2, 4},
                                                 {1, -2, -4},
                                                 {1, 0, 0},
                                                 {1, std::int64_t{1} << 62, 4}}) {
    CHECK_THROWS_AS(test::vision(*engine, std::vector<SmallImage>{{grid, good.values}}), Error);
  }
  CHECK(test::vision(*engine, std::vector<SmallImage>{good}).front()->n_rows() == 2);
  CHECK(test::vision(*engine, std::vector<SmallImage>{}).empty());
}

// A prompt of text around images, its image rows at 5 tokens' distance.
void add_prompt(Forest& forest, std::span<const VisionRowsPtr> rows, std::int32_t first_image,
                std::uint32_t seed) {
  std::int64_t at = forest.n_rows();
  std::int64_t n_tokens = 7;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    forest.image_rows.push_back(
        {first_image + static_cast<std::int32_t>(i), 0, at + 5, rows[i]->n_rows()});
    at += 5 + rows[i]->n_rows();
    n_tokens += 5 + rows[i]->n_rows();
  }
  forest.read_last_row(forest.add(-1, test::some_tokens(n_tokens, seed)));
}

class CountingTap : public Tap {
 public:
  void observe(std::string_view stage, std::int64_t row, std::span<const float> values) override {
    if (stage != kVisionStage) return;
    rows.push_back(row);
    width = values.size();
  }
  std::vector<std::int64_t> rows;
  std::size_t width = 0;
};

TEST_CASE("questions about images: batched, alone, watched") {
  const auto engine = make_cpu_engine(std::make_shared<test::SmallCheckpoint>(), small_labels(), 2);
  const std::vector<SmallImage> images{small_image(4, 6, 1), small_image(18, 20, 2),
                                       small_image(2, 2, 3)};
  const std::vector<VisionRowsPtr> rows = test::vision(*engine, images);
  const std::span<const VisionRowsPtr> all(rows);

  Forest batch;
  add_prompt(batch, all.first(2), 0, 11);
  add_prompt(batch, {}, 0, 12);
  add_prompt(batch, all.subspan(1, 2), 1, 13);
  add_prompt(batch, all.subspan(1, 2), 1, 14);
  const auto batched = test::forward(*engine, batch, nullptr, rows);
  CountingTap tap;
  const auto watched = test::forward(*engine, batch, &tap, rows);
  for (std::size_t i = 0; i < batched.size(); ++i) CHECK(same_bits(batched[i], watched[i]));
  CHECK(tap.rows.size() == 6 + 90 + 2 * (90 + 1));
  CHECK(tap.rows.front() == 5);
  CHECK(tap.width == 24);

  const auto alone = [&](std::span<const VisionRowsPtr> shown, std::uint32_t seed) {
    Forest forest;
    add_prompt(forest, shown, 0, seed);
    return test::forward(*engine, forest, nullptr, shown).front();
  };
  CHECK(same_bits(batched[0], alone(all.first(2), 11)));
  CHECK(same_bits(batched[1], alone({}, 12)));
  CHECK(same_bits(batched[2], alone(all.subspan(1, 2), 13)));
  CHECK(same_bits(batched[3], alone(all.subspan(1, 2), 14)));
  CHECK_FALSE(same_bits(batched[2], batched[3]));
}

TEST_CASE("an image that a segment's end cuts gives the same as one whole") {
  const auto engine = make_cpu_engine(std::make_shared<test::SmallCheckpoint>(), small_labels(), 1);
  const std::vector<VisionRowsPtr> rows =
      test::vision(*engine, std::vector<SmallImage>{small_image(18, 20, 2)});
  const std::vector<std::int32_t> tokens = test::some_tokens(102, 21);
  Forest whole, cut;
  whole.image_rows.push_back({0, 0, 5, 90});
  whole.read_last_row(whole.add(-1, tokens));
  cut.image_rows.push_back({0, 0, 5, 59});
  cut.image_rows.push_back({0, 59, 64, 31});
  const auto root = cut.add(-1, std::span(tokens).first(64));
  cut.read_last_row(cut.add(root, std::span(tokens).subspan(64)));
  CHECK(same_bits(test::forward(*engine, whole, nullptr, rows).front(),
                  test::forward(*engine, cut, nullptr, rows).front()));
}

TEST_CASE("image rows that do not fit are refused") {
  const auto engine = make_cpu_engine(std::make_shared<test::SmallCheckpoint>(), small_labels(), 1);
  const std::vector<VisionRowsPtr> rows =
      test::vision(*engine, std::vector<SmallImage>{small_image(4, 6, 1)});
  for (const ImageRows bad : {ImageRows{1, 0, 0, 6},
                              {0, 0, 0, 7},
                              {0, 1, 0, 6},
                              {-1, 0, 0, 6},
                              {0, 0, 5, 6},
                              {0, -1, 0, 6},
                              {0, 0, -1, 6},
                              {0, 0, 0, -1}}) {
    Forest forest;
    forest.image_rows.push_back(bad);
    forest.read_last_row(forest.add(-1, test::some_tokens(10, 1)));
    CHECK_THROWS_AS(test::forward(*engine, forest, nullptr, rows), Error);
  }
  Forest overlap;
  overlap.image_rows = {{0, 0, 0, 6}, {0, 0, 5, 2}};
  overlap.read_last_row(overlap.add(-1, test::some_tokens(10, 1)));
  CHECK_THROWS_AS(test::forward(*engine, overlap, nullptr, rows), Error);
  Forest missing;
  missing.image_rows = {{0, 0, 0, 6}};
  missing.read_last_row(missing.add(-1, test::some_tokens(10, 1)));
  CHECK_THROWS_AS(test::forward(*engine, missing), Error);
}

TEST_SUITE("extra") {
  // Heads of 72, a 48 x 48 grid, 27 blocks: sizes that no checkpoint of the repository has.
  TEST_CASE("the tower at full size follows the reference") {
    const char* extra = std::getenv("JEMM_EXTRA_GOLDEN");
    if (extra == nullptr) {
      MESSAGE("JEMM_EXTRA_GOLDEN is not set");
      return;
    }
    const std::string directory = std::string(extra) + "/qwen-27b/";
    const auto checkpoint = open_synthetic(
        {open_directory(directory + "base"), open_directory(directory + "adapter")}, 1);
    const SafetensorsFile golden(map_file(test::kSource + "/golden/vision-27b.safetensors"),
                                 "vision-27b.safetensors");
    Context context(2);
    VisionTower tower(*checkpoint);
    for (const auto& [rows, columns] : std::vector<std::pair<int, int>>{{4, 6}, {2, 50}}) {
      std::vector<float> values(static_cast<std::size_t>(rows * columns) * 1536);
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = (static_cast<float>((7919 * i + 31 * i / 1000) % 256) - 127.5f) / 127.5f;
      }
      const Matrix ours = std::move(tower.run(context, {{{{1, rows, columns}, values}}}).front());
      const auto name = std::to_string(rows) + "x" + std::to_string(columns);
      const SafetensorsEntry* entry = golden.find(name);
      REQUIRE_MESSAGE(entry != nullptr, name);
      const Tensor tensor = golden.tensor(*entry);
      std::vector<float> reference(static_cast<std::size_t>(tensor.size()));
      widen(tensor.dtype, tensor.data.bytes, reference);
      REQUIRE(static_cast<std::int64_t>(reference.size()) == ours.rows() * ours.cols());
      double difference = 0, size = 0;
      for (std::size_t i = 0; i < reference.size(); ++i) {
        const auto want = static_cast<double>(reference[i]);
        difference += std::pow(static_cast<double>(ours.row(0)[i]) - want, 2);
        size += want * want;
      }
      MESSAGE(name << ": RMS ratio " << std::sqrt(difference / size));
      CHECK(std::sqrt(difference / size) <= 1e-5);
    }
  }
}

}  // namespace
}  // namespace jemm

// The vision tower on the device against what the pinned reference computed, and that an image
// depends on itself alone.
#include "gpu/vision.h"

#include <cstdlib>
#include <fstream>
#include <memory>
#include <tuple>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "contract/request.h"
#include "core/cpu/small_checkpoint.h"
#include "engine/stages.h"
#include "gpu/support.h"
#include "image/decode.h"
#include "image/envelope.h"
#include "image/patches.h"

namespace jemm {
namespace {

using gpu::CudaVisionRows;
using test::bf16;

const std::string kSource = JEMM_SOURCE_DIR;

CheckpointFiles files_in(const std::string& directory) {
  return {open_directory(directory + "/base"), open_directory(directory + "/adapter")};
}

// A tower with what it stands on.
template <typename T>
struct Tower {
  explicit Tower(const Checkpoint& checkpoint, gpu::GemmMode mode = gpu::GemmMode::kFastest)
      : gemms(mode), loader(checkpoint), tower(loader, gemms, stream) {}

  std::vector<std::vector<float>> run(std::span<const ImagePatches> images) {
    std::vector<std::vector<float>> results;
    for (const auto& rows : tower.run(images)) results.push_back(rows->floats(stream));
    return results;
  }

  gpu::Stream stream;
  gpu::Gemms gemms;
  gpu::Loader loader;
  gpu::VisionTower<T> tower;
};

std::vector<Patches> patches_of(const nlohmann::json& record, const std::string& fixture) {
  const std::string file = "preprocessor_config.json";
  const PreprocessorConfig config = parse_preprocessor_config(
      open_directory(kSource + "/fixtures/" + fixture + "/base")->open(file).text(), file);
  std::vector<Patches> patches;
  const Request request = Request::parse(record.at("raw").get<std::string>());
  for (std::size_t i = 0; i < request.image_count(); ++i) {
    patches.push_back(
        preprocess_image(decode_image(i, decode_envelope(i, request.image(i))), config));
  }
  return patches;
}

std::vector<float> floats_of(const SafetensorsFile& file, const std::string& name) {
  const SafetensorsEntry* entry = file.find(name);
  REQUIRE_MESSAGE(entry != nullptr, name);
  const Tensor tensor = file.tensor(*entry);
  std::vector<float> values(static_cast<std::size_t>(tensor.size()));
  widen(tensor.dtype, tensor.data.bytes, values);
  return values;
}

// What FP32 allows; or a share more than `noise`, the worst RMS ratio of the reference's own tower
// in BF16 (Transformers 5.17.0, PyTorch on a CPU) on the same images.
template <typename T>
double budget(double noise) {
  return sizeof(T) == 2 ? 1.2 * noise : 1e-5;
}

// The merged rows of every request with images in a golden directory.
template <typename T>
void check_golden(const std::string& name, const Checkpoint& checkpoint, const std::string& fixture,
                  double noise, std::size_t n_expected) {
  Tower<T> tower(checkpoint);
  const std::string directory = kSource + "/golden/" + name;
  const SafetensorsFile stages(map_file(directory + "/stages.safetensors"), name);
  std::size_t n_requests = 0;
  double worst = 0;
  std::ifstream cases(directory + "/cases.jsonl");
  for (std::string line; std::getline(cases, line);) {
    const auto record = nlohmann::json::parse(line);
    if (record.at("status") != "ok" || !record.contains("images")) continue;
    const std::vector<Patches> images = patches_of(record, fixture);
    std::vector<ImagePatches> patches;
    for (const Patches& image : images) patches.push_back({image.grid_thw, image.values});
    std::vector<float> rows;
    for (const std::vector<float>& image : tower.run(patches)) {
      rows.insert(rows.end(), image.begin(), image.end());
    }
    const std::string key = record.at("id").get<std::string>() + "/0/" + std::string(kVisionStage);
    const double ratio = test::rms_ratio(rows, floats_of(stages, key));
    CHECK_MESSAGE(ratio <= budget<T>(noise), key);
    worst = std::max(worst, ratio);
    ++n_requests;
  }
  MESSAGE(name << (sizeof(T) == 2 ? ", BF16: " : ", FP32: ") << n_requests
               << " requests with images, worst RMS ratio " << worst);
  CHECK(n_requests == n_expected);
}

TEST_CASE_TEMPLATE("the tower follows the reference", T, float, bf16) {
  if (!test::has_device()) return;
  const std::string tiny = kSource + "/fixtures/tiny-a", demo = kSource + "/fixtures/demo";
  check_golden<T>("image-fp32-cpu", *open_checkpoint(files_in(tiny)), "tiny-a", 0.00846, 34);
  check_golden<T>("synthetic-tiny-a-fp32-cpu", *open_synthetic(files_in(tiny), 1), "tiny-a",
                  0.00634, 2);
  check_golden<T>("demo-fp32-cpu", *open_checkpoint(files_in(demo)), "demo", 0.00179, 20);
}

struct SmallImage {
  std::array<std::int64_t, 3> grid_thw;
  std::vector<float> values;
};

SmallImage small_image(std::int64_t rows, std::int64_t columns, std::uint32_t seed) {
  return {{1, rows, columns}, test::uniform(rows * columns * 24, seed, -1, 1)};
}

TEST_CASE_TEMPLATE("an image's rows are the same alone and beside others", T, float, bf16) {
  if (!test::has_device()) return;
  const test::SmallCheckpoint checkpoint;
  std::vector<SmallImage> images;
  for (const auto& [rows, columns] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {2, 2}, {6, 4}, {16, 8}, {100, 96}, {2, 34}, {18, 20}, {8, 8}}) {
    images.push_back(small_image(rows, columns, static_cast<std::uint32_t>(100 * rows + columns)));
  }
  std::vector<ImagePatches> forward;
  for (const SmallImage& image : images) forward.push_back({image.grid_thw, image.values});
  const std::vector<ImagePatches> backward(forward.rbegin(), forward.rend());

  Tower<T> tower(checkpoint, gpu::GemmMode::kDeterministic);
  const auto together = tower.run(forward), reversed = tower.run(backward);
  for (std::size_t i = 0; i < images.size(); ++i) {
    CAPTURE(i);
    Tower<T> fresh(checkpoint, gpu::GemmMode::kDeterministic);
    const auto alone = fresh.run({{forward[i]}});
    const auto& grid = images[i].grid_thw;
    REQUIRE(alone.front().size() == static_cast<std::size_t>(grid[1] * grid[2] / 4 * 24));
    CHECK(test::same_bits(together[i], alone.front()));
    CHECK(test::same_bits(reversed[images.size() - 1 - i], alone.front()));
  }
}

TEST_CASE("patches see the whole image: each value moves every row") {
  if (!test::has_device()) return;
  const test::SmallCheckpoint checkpoint;
  Tower<float> tower(checkpoint);
  SmallImage image = small_image(18, 8, 9);
  const auto before = tower.run({{{image.grid_thw, image.values}}});
  image.values.back() += 1;  // the second frame of the last patch
  const auto after = tower.run({{{image.grid_thw, image.values}}});
  for (std::size_t row = 0; row < 36; ++row) {
    CHECK(std::memcmp(before[0].data() + row * 24, after[0].data() + row * 24, 96) != 0);
  }
}

TEST_CASE("an image too large for the memory leaves room for others") {
  if (!test::has_device()) return;
  const test::SmallCheckpoint checkpoint;
  Tower<bf16> tower(checkpoint);
  const SmallImage small = small_image(18, 8, 9), large = small_image(600, 600, 9);
  const auto before = tower.run({{{small.grid_thw, small.values}}});
  const test::HeldMemory held(96);
  for (int i = 0; i < 3; ++i) {
    CHECK_THROWS_AS(tower.run({{{large.grid_thw, large.values}}}), OutOfMemory);
    CHECK(test::same_bits(tower.run({{{small.grid_thw, small.values}}}).front(), before.front()));
  }
}

TEST_CASE("patches that are no grid, and towers too wide, are refused") {
  if (!test::has_device()) return;
  const test::SmallCheckpoint checkpoint;
  Tower<bf16> tower(checkpoint);
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
    CHECK_THROWS_AS(tower.run({{{grid, good.values}}}), Error);
  }
  CHECK(tower.tower.run({{{good.grid_thw, good.values}}}).front()->n_rows() == 2);
  CHECK(tower.run({}).empty());

  ModelConfig wide = test::small_config();
  wide.vision.hidden_size = 2 * 132;
  const test::SmallCheckpoint too_wide(wide);
  CHECK_THROWS_AS(Tower<bf16>{too_wide}, Error);
}

TEST_CASE("rows outlive their tower, and their memory is used again") {
  if (!test::has_device()) return;
  const test::SmallCheckpoint checkpoint;
  const SmallImage image = small_image(4, 6, 1);
  const std::vector<ImagePatches> patches{{image.grid_thw, image.values}};
  auto tower = std::make_unique<Tower<float>>(checkpoint);
  const auto kept = tower->tower.run(patches).front();
  const void* second = nullptr;
  {
    const auto rows = tower->tower.run(patches).front();
    second = rows->values();
    CHECK(second != kept->values());
    CHECK(rows->size_bytes() == 6 * 24 * sizeof(float));
    CHECK(rows->width() == 24);
    CHECK(rows->element() == gpu::Element::kF32);
  }
  CHECK(tower->tower.run(patches).front()->values() == second);
  const auto want = tower->run(patches).front();
  tower.reset();
  const gpu::Stream stream;
  CHECK(test::same_bits(kept->floats(stream), want));
}

TEST_SUITE("extra") {
  // Heads of 72, a 48 x 48 grid, 27 blocks: sizes that no checkpoint of the repository has.
  TEST_CASE_TEMPLATE("the tower at full size follows the reference", T, float, bf16) {
    const char* extra = std::getenv("JEMM_EXTRA_GOLDEN");
    if (extra == nullptr) {
      MESSAGE("JEMM_EXTRA_GOLDEN is not set");
      return;
    }
    if (!test::has_device()) return;
    const auto checkpoint = open_synthetic(files_in(std::string(extra) + "/qwen-27b"), 1);
    const SafetensorsFile golden(map_file(kSource + "/golden/vision-27b.safetensors"),
                                 "vision-27b.safetensors");
    Tower<T> tower(*checkpoint);
    for (const auto& [rows, columns, noise] :
         std::vector<std::tuple<int, int, double>>{{4, 6, 0.0127}, {2, 50, 0.0116}}) {
      std::vector<float> values(static_cast<std::size_t>(rows * columns) * 1536);
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = (static_cast<float>((7919 * i + 31 * i / 1000) % 256) - 127.5f) / 127.5f;
      }
      const auto ours = tower.run({{{{1, rows, columns}, values}}});
      const auto name = std::to_string(rows) + "x" + std::to_string(columns);
      const double ratio = test::rms_ratio(ours.front(), floats_of(golden, name));
      MESSAGE(name << (sizeof(T) == 2 ? ", BF16: " : ", FP32: ") << "RMS ratio " << ratio);
      CHECK(ratio <= budget<T>(noise));
    }
  }
}

}  // namespace
}  // namespace jemm

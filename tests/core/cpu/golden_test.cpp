// The engine against what the pinned reference computed in float32.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "checkpoint/safetensors.h"
#include "contract/request.h"
#include "core/cpu/support.h"
#include "engine/stages.h"
#include "image/decode.h"
#include "image/envelope.h"
#include "image/patches.h"
#include "image/positions.h"

namespace jemm {
namespace {

using test::kSource;

class StageTap : public Tap {
 public:
  void observe(std::string_view stage, std::int64_t row, std::span<const float> values) override {
    stages[{std::string(stage), row}].assign(values.begin(), values.end());
  }
  std::map<std::pair<std::string, std::int64_t>, std::vector<float>> stages;
};

double rms_ratio(const std::vector<float>& x, const std::vector<float>& reference) {
  REQUIRE(x.size() == reference.size());
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double d = static_cast<double>(x[i]) - static_cast<double>(reference[i]);
    difference += d * d;
    norm += static_cast<double>(reference[i]) * static_cast<double>(reference[i]);
  }
  REQUIRE(norm > 0);
  return std::sqrt(difference / norm);
}

std::vector<double> probabilities(const std::vector<double>& logits, double temperature) {
  const double maximum = *std::max_element(logits.begin(), logits.end());
  std::vector<double> p;
  double sum = 0;
  for (const double x : logits) p.push_back(std::exp((x - maximum) / temperature));
  for (const double x : p) sum += x;
  for (double& x : p) x /= sum;
  return p;
}

struct Budget {
  double probability_median, probability_max, stage;
};
constexpr Budget kFp32{1e-5, 3e-4, 5e-4};
constexpr Budget kFp32Trained{1e-5, 1e-5, 1e-5};

enum class Cases { kText, kImages };

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

// A question and, in its place, every image of the request.
void add_question(Forest& forest, const nlohmann::json& question, std::span<const Patches> images,
                  std::int32_t image_token) {
  const auto tokens = question.at("token_ids").get<std::vector<std::int32_t>>();
  std::vector<std::array<std::int64_t, 3>> grids;
  std::int64_t row = forest.n_rows();
  const std::int64_t begin = row;
  for (const Patches& image : images) {
    const auto n = static_cast<std::int64_t>(image.n_tokens());
    while (tokens.at(static_cast<std::size_t>(row - begin)) != image_token) ++row;
    forest.image_rows.push_back({static_cast<std::int32_t>(grids.size()), 0, row, n});
    row += n;
    grids.push_back(image.grid_thw);
  }
  const auto positions =
      images.empty() ? std::vector<Position>{} : prompt_positions(tokens, image_token, grids);
  forest.read_last_row(forest.add(-1, tokens, positions));
}

// Everything that the tap saw of a stage for one question: its read row, or the rows of its images.
std::vector<float> stage_values(const StageTap& tap, const Forest& forest, std::size_t question,
                                const std::string& stage) {
  const std::int64_t read = forest.read_rows[question];
  if (stage != kVisionStage) return tap.stages.at({stage, read});
  std::vector<float> values;
  for (const ImageRows& rows : forest.image_rows) {
    const bool own = rows.row_begin <= read &&
                     (question == 0 || rows.row_begin > forest.read_rows[question - 1]);
    for (std::int64_t i = 0; own && i < rows.n_rows; ++i) {
      const std::vector<float>& row = tap.stages.at({stage, rows.row_begin + i});
      values.insert(values.end(), row.begin(), row.end());
    }
  }
  return values;
}

// All questions of a golden directory with or without images, in one pass a case.
void check_golden(const std::string& name, std::shared_ptr<const Checkpoint> checkpoint,
                  const std::string& fixture, const Budget& budget, Cases which,
                  std::size_t n_expected) {
  const DecisionConfig& decision = checkpoint->decision();
  const double temperature =
      which == Cases::kImages ? decision.mm_temperature : decision.temperature;
  std::vector<std::string> names{std::string(kFinalNormStage)};
  for (std::int64_t i = 0; i < checkpoint->config().text.n_layers(); ++i)
    names.push_back(layer_stage(i));
  if (which == Cases::kImages) names.emplace_back(kVisionStage);
  const auto engine = make_cpu_engine(checkpoint, test::fixture_labels(fixture), 2);
  const std::string directory = kSource + "/golden/" + name;
  const SafetensorsFile stages(map_file(directory + "/stages.safetensors"), name);

  std::vector<double> differences;
  double worst_stage = 0;
  std::size_t n_questions = 0, n_stages = 0;
  std::ifstream cases(directory + "/cases.jsonl");
  for (std::string line; std::getline(cases, line);) {
    const auto record = nlohmann::json::parse(line);
    if (record.at("status") != "ok") continue;
    if (record.contains("images") != (which == Cases::kImages)) continue;
    const std::string id = record.at("id");
    const auto& questions = record.at("questions");
    const std::vector<Patches> images =
        which == Cases::kImages ? patches_of(record, fixture) : std::vector<Patches>{};
    Forest forest;
    for (const auto& question : questions) {
      add_question(forest, question, images, checkpoint->config().image_token_id);
    }
    StageTap tap;
    const auto results = test::forward(*engine, forest, &tap, test::vision(*engine, images));
    for (std::size_t q = 0; q < questions.size(); ++q) {
      ++n_questions;
      const auto expected = questions[q].at("logits").get<std::vector<double>>();
      const std::vector<double> got(
          results[q].begin(), results[q].begin() + static_cast<std::ptrdiff_t>(expected.size()));
      const auto p = probabilities(got, temperature),
                 reference = probabilities(expected, temperature);
      for (std::size_t i = 0; i < p.size(); ++i)
        differences.push_back(std::abs(p[i] - reference[i]));

      for (const std::string& stage : names) {
        const std::string key = id + "/" + std::to_string(q) + "/" + stage;
        const SafetensorsEntry* entry = stages.find(key);
        REQUIRE_MESSAGE(entry != nullptr, key);
        const Tensor tensor = stages.tensor(*entry);
        std::vector<float> reference_stage(static_cast<std::size_t>(tensor.size()));
        widen(tensor.dtype, tensor.data.bytes, reference_stage);
        const double ratio = rms_ratio(stage_values(tap, forest, q, stage), reference_stage);
        CHECK_MESSAGE(ratio <= budget.stage, key);
        worst_stage = std::max(worst_stage, ratio);
        ++n_stages;
      }
    }
  }
  std::sort(differences.begin(), differences.end());
  const double median = differences[differences.size() / 2];
  MESSAGE(name << ": " << n_questions << " questions, probabilities median " << median << " max "
               << differences.back() << "; " << n_stages << " stages, worst " << worst_stage);
  CHECK(n_questions == n_expected);
  CHECK(median <= budget.probability_median);
  CHECK(differences.back() <= budget.probability_max);
}

TEST_CASE("tiny-a follows the reference") {
  const auto checkpoint = test::open_fixture("tiny-a");
  check_golden("text-fp32-cpu", checkpoint, "tiny-a", kFp32, Cases::kText, 157);
  check_golden("image-fp32-cpu", checkpoint, "tiny-a", kFp32, Cases::kImages, 38);
}

TEST_CASE("weights from the formula in tiny-a's sizes follow the reference") {
  const std::shared_ptr<const Checkpoint> checkpoint =
      open_synthetic(test::fixture_files("tiny-a"), 1);
  const std::string name = "synthetic-tiny-a-fp32-cpu";
  check_golden(name, checkpoint, "tiny-a", kFp32, Cases::kText, 47);
  check_golden(name, checkpoint, "tiny-a", kFp32, Cases::kImages, 2);
}

TEST_CASE("demo follows the reference") {
  const auto checkpoint = test::open_fixture("demo");
  check_golden("demo-fp32-cpu", checkpoint, "demo", kFp32Trained, Cases::kText, 147);
  check_golden("demo-fp32-cpu", checkpoint, "demo", kFp32Trained, Cases::kImages, 34);
}

}  // namespace
}  // namespace jemm

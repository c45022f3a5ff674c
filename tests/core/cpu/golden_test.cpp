// The engine against what the pinned reference computed in float32.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "checkpoint/safetensors.h"
#include "core/cpu/support.h"

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

// All text questions of a golden directory in one pass a case.
void check_golden(const std::string& name, std::shared_ptr<const Checkpoint> checkpoint,
                  const std::string& fixture, const Budget& budget, std::size_t n_expected) {
  const double temperature = checkpoint->decision().temperature;
  const std::int64_t n_layers = checkpoint->config().text.n_layers();
  const auto engine = make_cpu_engine(checkpoint, test::fixture_labels(fixture), 2);
  const std::string directory = kSource + "/golden/" + name;
  const SafetensorsFile stages(map_file(directory + "/stages.safetensors"), name);

  std::vector<double> differences;
  double worst_stage = 0;
  std::size_t n_questions = 0, n_stages = 0;
  std::ifstream cases(directory + "/cases.jsonl");
  for (std::string line; std::getline(cases, line);) {
    const auto record = nlohmann::json::parse(line);
    if (record.at("status") != "ok" || record.contains("images")) continue;
    const std::string id = record.at("id");
    const auto& questions = record.at("questions");
    Forest forest;
    for (const auto& question : questions) {
      forest.read_last_row(
          forest.add(-1, question.at("token_ids").get<std::vector<std::int32_t>>()));
    }
    StageTap tap;
    const auto results = test::forward(*engine, forest, &tap);
    for (std::size_t q = 0; q < questions.size(); ++q) {
      ++n_questions;
      const auto expected = questions[q].at("logits").get<std::vector<double>>();
      const std::vector<double> got(
          results[q].begin(), results[q].begin() + static_cast<std::ptrdiff_t>(expected.size()));
      const auto p = probabilities(got, temperature),
                 reference = probabilities(expected, temperature);
      for (std::size_t i = 0; i < p.size(); ++i)
        differences.push_back(std::abs(p[i] - reference[i]));

      std::vector<std::string> names{"final_norm"};
      for (std::int64_t i = 0; i < n_layers; ++i) names.push_back("layer.0" + std::to_string(i));
      for (const std::string& stage : names) {
        const std::string key = id + "/" + std::to_string(q) + "/" + stage;
        const SafetensorsEntry* entry = stages.find(key);
        REQUIRE_MESSAGE(entry != nullptr, key);
        const Tensor tensor = stages.tensor(*entry);
        std::vector<float> reference_stage(static_cast<std::size_t>(tensor.size()));
        widen(tensor.dtype, tensor.data.bytes, reference_stage);
        const double ratio =
            rms_ratio(tap.stages.at({stage, forest.read_rows[q]}), reference_stage);
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
  check_golden("text-fp32-cpu", test::open_fixture("tiny-a"), "tiny-a", kFp32, 157);
}

TEST_CASE("weights from the formula in tiny-a's sizes follow the reference") {
  check_golden("synthetic-tiny-a-fp32-cpu", open_synthetic(test::fixture_files("tiny-a"), 1),
               "tiny-a", kFp32, 47);
}

TEST_CASE("demo follows the reference") {
  check_golden("demo-fp32-cpu", test::open_fixture("demo"), "demo", kFp32Trained, 147);
}

}  // namespace
}  // namespace jemm

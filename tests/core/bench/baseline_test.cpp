// A report beside an earlier one.
#include <doctest/doctest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "bench/baseline.h"
#include "sample_report.h"

namespace jemm {
namespace {

using testing::sample_report;

BaselineComparison compare(const BenchReport& now, const BenchReport& then) {
  const Baseline baseline(bench_json(then), "old.json");
  baseline.check_same_ground(now);
  return baseline.compare(now, 1.1);
}

BenchReport slower(double factor) {
  BenchReport report = sample_report();
  for (Sample& sample : report.results[0].modes[1].samples) sample.total_ms *= factor;
  return report;
}

std::string refusal(const BenchReport& then) {
  try {
    compare(sample_report(), then);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kUsage);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the same times, slower ones, quicker ones") {
  const BaselineComparison same = compare(sample_report(), sample_report());
  REQUIRE(same.slowdowns.size() == 2);
  CHECK(same.slowdowns[1].ratio.value == 1);
  CHECK_FALSE(same.slowdowns[1].is_over);
  CHECK(same.unmatched.empty());

  const BaselineComparison over = compare(slower(1.2), sample_report());
  CHECK(over.slowdowns[1].ratio.value == doctest::Approx(1.2));
  CHECK(over.slowdowns[1].is_over);
  CHECK_FALSE(over.slowdowns[0].is_over);
  CHECK(baseline_text(over, 1.1).find("100 tokens, precision=bf16: 1.200 times the baseline's time "
                                      "(1.200 to 1.200), SLOWER than the limit of 1.1\n") !=
        std::string::npos);

  CHECK_FALSE(compare(slower(1.09), sample_report()).slowdowns[1].is_over);
  CHECK_FALSE(compare(slower(0.5), sample_report()).slowdowns[1].is_over);
}

TEST_CASE("results are matched by their requests, the mode's setup and its weights") {
  BenchReport now = sample_report();
  now.results[0].workload.name = "renamed";
  CHECK(compare(now, sample_report()).slowdowns.size() == 2);
  now.modes[0].setup = "cuda:0, fp32, deterministic";
  CHECK(compare(now, sample_report()).slowdowns.size() == 1);
  CHECK(compare(now, sample_report()).unmatched ==
        std::vector<std::string>{"renamed, precision=fp32"});
  now = sample_report();
  now.modes[0].weights = "other";  // as in --compare model=A,B
  CHECK(compare(now, sample_report()).slowdowns.size() == 1);
  now.results[0].workload.sha256 = "beef";
  CHECK(compare(now, sample_report()).slowdowns.empty());
}

TEST_CASE("another machine, model or kind of build is refused by name") {
  BenchReport then = sample_report();
  then.environment.n_processors = 2;
  CHECK(refusal(then) ==
        "--baseline old.json is of another processor: 2 x Some Processor, not 16 x Some Processor");
  then = sample_report();
  then.environment.gpu.reset();
  CHECK(refusal(then) == "--baseline old.json is of another GPU: none, not Some GPU");
  then = sample_report();
  then.environment.build = "Debug, GNU 12.2.0, CUDA";
  CHECK(refusal(then).find("another kind of build") != std::string::npos);
  then = sample_report();
  then.model.fingerprint = "other";
  CHECK(refusal(then).find("another model: other, not abcd") != std::string::npos);
}

TEST_CASE("what is no report is refused, whatever is wrong with it") {
  const nlohmann::json good = nlohmann::json::parse(bench_json(sample_report()));
  const auto compare_text = [](const std::string& text) {
    Baseline(text, "old.json").check_same_ground(sample_report());
  };
  compare_text(good.dump());
  const std::function<void(nlohmann::json&)> faults[] = {
      [](auto& json) { json["schema"] = "jemm-bench/2"; },
      [](auto& json) { json["schema"] = 1; },
      [](auto& json) { json.erase("environment"); },
      [](auto& json) { json["environment"] = 5; },
      [](auto& json) { json["environment"]["cpu"] = 5; },
      [](auto& json) { json["environment"]["processors"] = "many"; },
      [](auto& json) { json["results"] = "none"; },
      [](auto& json) { json["results"][0] = nullptr; },
      [](auto& json) {
        json["results"][0]["modes"][0]["total_ms"]["samples"] = {1, -1};
      },
      [](auto& json) { json["results"][0]["modes"][0]["total_ms"]["samples"] = {"1"}; },
      [](auto& json) {
        json["results"][0]["modes"][0]["total_ms"]["samples"] = nlohmann::json::array();
      },
  };
  for (std::size_t i = 0; i < std::size(faults); ++i) {
    CAPTURE(i);
    nlohmann::json json = good;
    faults[i](json);
    CHECK_THROWS_AS(compare_text(json.dump()), Error);
  }
  for (const char* text : {"", "{", "[]", "null", "{\"schema\":\"jemm-bench/1\"}", "\xff"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(compare_text(text), Error);
  }
  CHECK_THROWS_AS(compare_text(std::string(100000, '[')), Error);
}

}  // namespace jemm

// A report beside an earlier one.
#include <doctest/doctest.h>

#include <cmath>
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
  return baseline.compare(now, 1.1, [] { return false; });
}

BenchReport slower(double factor) {
  BenchReport report = sample_report();
  for (RunSample& sample : report.results[0].modes[1].samples) sample.total_ms *= factor;
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
  REQUIRE(same.slowdowns[1].ratio);
  CHECK(same.slowdowns[1].ratio->value == 1);
  CHECK_FALSE(same.slowdowns[1].is_over);
  CHECK(same.unmatched.empty());

  const BaselineComparison over = compare(slower(1.2), sample_report());
  REQUIRE(over.slowdowns[1].ratio);
  CHECK(over.slowdowns[1].ratio->value == doctest::Approx(1.2));
  CHECK(over.slowdowns[1].is_over);
  CHECK_FALSE(over.slowdowns[0].is_over);
  CHECK(baseline_text(over, 1.1, 0.01)
            .find("100 tokens, precision=bf16: 1.200 times the baseline's time "
                  "(1.200 to 1.200), SLOWER than the limit of 1.1\n") != std::string::npos);

  CHECK_FALSE(compare(slower(1.09), sample_report()).slowdowns[1].is_over);
  CHECK_FALSE(compare(slower(0.5), sample_report()).slowdowns[1].is_over);
}

TEST_CASE("no ratio where the answers differ") {
  BenchReport now = sample_report();
  now.results[0].modes[1].answers[0].probabilities = {0.6, 0.3};
  const BaselineComparison differs = compare(now, sample_report());
  REQUIRE(differs.slowdowns.size() == 2);
  CHECK(differs.slowdowns[0].ratio.has_value());
  CHECK_FALSE(differs.slowdowns[1].ratio.has_value());
  CHECK(baseline_text(differs, 1.1, 0.01)
            .find("100 tokens, precision=bf16: no ratio is given, the answers DIFFER from the "
                  "baseline's "
                  "by 0.1, more than 0.01: request 1, question q: candidate 1 went from 0.7 to "
                  "0.6\n") != std::string::npos);
  now.max_drift = 0.2;
  CHECK(compare(now, sample_report()).slowdowns[1].ratio.has_value());

  now = sample_report();
  BenchReport then = sample_report();
  now.results[0].modes[1].answers[0] = {"request 1", std::string(kRefused), {}};
  CHECK_FALSE(compare(now, then).slowdowns[1].ratio.has_value());
  then.results[0].modes[1].answers = now.results[0].modes[1].answers;
  CHECK(compare(now, then).slowdowns[1].ratio.has_value());

  then = sample_report();
  then.results[0].modes[1].answers[0].probabilities[0] = std::nan("");
  CHECK_FALSE(compare(then, then).slowdowns[1].ratio.has_value());
}

TEST_CASE("few runs on either side: a ratio, too few runs to tell") {
  for (std::size_t n = 1; n <= 4; ++n) {
    BenchReport few = sample_report();
    few.results[0].modes[1].samples.resize(n);
    for (const BaselineComparison& comparison :
         {compare(few, sample_report()), compare(sample_report(), few)}) {
      REQUIRE(comparison.slowdowns[1].ratio);
      CHECK_FALSE(comparison.slowdowns[1].ratio->interval.has_value());
      CHECK(baseline_text(comparison, 1.1, 0.01)
                .find("1.000 times the baseline's time (too few runs to tell)\n") !=
            std::string::npos);
    }
  }
}

TEST_CASE("told to stop, no more results are compared") {
  const Baseline baseline(bench_json(sample_report()), "old.json");
  int n_asked = 0;
  CHECK(baseline.compare(sample_report(), 1.1, [&] { return n_asked++ > 0; }).slowdowns.size() ==
        1);
}

TEST_CASE("a baseline holds no more than a report can") {
  const nlohmann::json good = nlohmann::json::parse(bench_json(sample_report()));
  const auto refusal_with = [&](const char* list, const nlohmann::json& values) {
    nlohmann::json json = good;
    nlohmann::json& mode = json["results"][0]["modes"][0];
    (list == std::string("samples") ? mode["total_ms"]["samples"] : mode[list]) = values;
    try {
      Baseline(json.dump(), "old.json");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal_with("samples", std::vector<int>(kMostRuns, 1)).empty());
  CHECK(refusal_with("samples", std::vector<int>(kMostRuns + 1, 1)) ==
        "--baseline old.json has 100001 samples of a mode, more than 100000");
  CHECK(refusal_with("samples", std::vector<int>(5'000'000, 1)) ==
        "--baseline old.json has more values than a report");
  CHECK(refusal_with("answers", std::vector<std::vector<double>>(2500, {0.1, 0.2, 0.3, 0.4}))
            .empty());
  CHECK(refusal_with("answers", std::vector<std::vector<double>>(2501, {0.1, 0.2, 0.3, 0.4})) ==
        "--baseline old.json has more than 10000 probabilities of a mode");
  CHECK_FALSE(refusal_with("answers", std::vector<std::vector<double>>(10'001)).empty());
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
      [](auto& json) { json["results"][0]["modes"][0].erase("answers"); },
      [](auto& json) { json["results"][0]["modes"][0]["answers"] = {0.5}; },
      [](auto& json) { json["results"][0]["modes"][0]["answers"][0] = {"0.5"}; },
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

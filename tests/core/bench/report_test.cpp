// Doubts, the text and the JSON of a report with known numbers.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "sample_report.h"

namespace jemm {
namespace {

using testing::sample_report;

bool says(const std::string& text, std::string_view words) {
  return text.find(words) != std::string::npos;
}

/// Columns without their padding.
std::string one_spaced(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c != ' ' || !result.ends_with(' ')) result += c;
  }
  return result;
}

/// The one doubt of a report.
std::string doubt(const BenchReport& report) {
  const std::vector<std::string> all = doubts(report);
  return all.size() == 1 ? all[0] : std::to_string(all.size()) + " doubts";
}

}  // namespace

TEST_CASE("nothing is doubtful about a clean run") {
  CHECK(doubts(sample_report()).empty());
}

TEST_CASE("every doubt has its cause") {
  BenchReport report = sample_report();
  report.environment.load_before = 8.1;
  CHECK(doubt(report) == "load average 8.1 on 16 processors before the run");

  report = sample_report();
  report.environment.governor = "powersave";
  CHECK(doubt(report) == "the processor's clock is governed by \"powersave\"");

  report = sample_report();
  report.environment.build = "Debug, GNU 12.2.0";
  CHECK(doubt(report) == "this is a Debug, GNU 12.2.0 build");

  report = sample_report();
  report.environment.gpu->n_other_processes = 1;
  report.environment.gpu->other_bytes = 2'500'000'000;
  CHECK(doubt(report) == "another process uses the GPU (1, with 2.5 GB)");

  report = sample_report();
  report.environment.gpu->other_bytes = 3'000'000'000;
  CHECK(doubt(report) == "3.0 GB of the GPU's memory were taken before the run");
  report.environment.gpu->other_bytes = 500'000'000;
  CHECK(doubts(report).empty());

  report = sample_report();
  report.environment.gpu->unwatched = "no libnvidia-ml.so.1";
  CHECK(doubt(report) == "the GPU's clocks and throttling are unknown: no libnvidia-ml.so.1");

  report = sample_report();
  report.model.is_toy = true;
  CHECK(says(doubt(report), "toy"));

  report = sample_report();
  report.results[0].workload.n_requests = 5;
  report.results[0].workload.n_refused = 2;
  CHECK(says(doubt(report), "2 of 5 requests were refused"));

  report = sample_report();
  report.results[0].modes[1].samples.resize(9);
  CHECK(doubt(report) == "100 tokens, precision=bf16: n = 9, below 10");

  report = sample_report();
  for (int i = 0; i < 3; ++i) {
    report.results[0].modes[0].samples[i].total_ms = 30;
    report.results[0].modes[0].samples[i].stages[Stage::kText] = 25;
  }
  CHECK(doubt(report) == "100 tokens, precision=fp32: wide spread, p90 is 1.50 times p10");

  report = sample_report();
  for (RunSample& sample : report.results[0].modes[0].samples) sample.stages[Stage::kText] -= 0.5;
  CHECK(doubt(report) == "100 tokens, precision=fp32: 2.5 % of the time is in no stage");

  report = sample_report();
  for (RunSample& sample : report.results[0].modes[0].samples) {
    sample.stages[Stage::kTokenize] += 2;
    sample.overlap_ms = 2;
  }
  CHECK(doubts(report).empty());
  for (RunSample& sample : report.results[0].modes[0].samples) sample.overlap_ms = 1.5;
  CHECK(doubt(report) == "100 tokens, precision=fp32: -2.5 % of the time is in no stage");

  report = sample_report();
  for (int i = 0; i < 3; ++i) {
    report.results[0].modes[0].samples[i].gpu->throttle_reasons = i == 0 ? 0x04 : 0x40;
  }
  report.results[0].modes[0].samples[5].gpu->throttle_reasons = 0x01;  // idle is no throttling
  CHECK(doubt(report) ==
        "100 tokens, precision=fp32: the GPU was throttled in 3 of 12 samples (power cap, hardware "
        "thermal slowdown)");

  report = sample_report();
  report.results[0].modes[1].samples[4].gpu->sm_mhz = 1500;
  CHECK(doubt(report) == "100 tokens, precision=bf16: the GPU's clock went from 1500 to 1900 MHz");
}

TEST_CASE("the text has times, stages, the floor and the speed-up") {
  const std::string text = one_spaced(bench_text(sample_report()));
  CHECK(says(text,
             "Some GPU, driver 580.1; at the end SM 1900 of 1980 MHz, memory 3200 MHz, 40 C, 500 "
             "W, 50.0 GB in use\n"));
  CHECK(says(text, "100 tokens precision=bf16 12 10.00 10.00 10.00 - 7.500 99.00 100 100 10000"));
  CHECK_FALSE(says(text, "overlap"));
  CHECK(says(text, " 2.50\n"));  // 7.5 ms of engine over a floor of 3
  CHECK(says(text,
             "100 tokens: precision=bf16 against precision=fp32: 2.000 (2.000 to 2.000) times "
             "as fast"));
  CHECK_FALSE(says(text, "doubtful"));
}

TEST_CASE("stages that took place at once are told apart, and a row adds up") {
  BenchReport report = sample_report();
  for (RunSample& sample : report.results[0].modes[0].samples) {
    sample.stages[Stage::kTokenize] += 2;
    sample.overlap_ms = 2;
  }
  const std::string text = one_spaced(bench_text(report));
  CHECK(says(text, "tokenize text other overlap total\n"));
  CHECK(says(text, "100 tokens precision=fp32 7.000 15.00 0.000 -2.000 20.00\n"));
}

TEST_CASE("a speed-up that may be chance says so") {
  BenchReport report = sample_report();
  auto& samples = report.results[0].modes[1].samples;
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i].total_ms = i % 2 == 0 ? 15 : 25;
  CHECK(says(bench_text(report), "times as fast, which may be chance"));
  CHECK_FALSE(says(bench_text(sample_report()), "chance"));
}

TEST_CASE("few runs have no interval, and claim nothing") {
  for (std::size_t n = 1; n <= 4; ++n) {
    CAPTURE(n);
    BenchReport report = sample_report();
    for (Series& series : report.results[0].modes) series.samples.resize(n);
    const std::string text = bench_text(report);
    CHECK(says(text, "2.000 (too few runs to tell) times as fast"));
    CHECK_FALSE(says(text, "(2.000 to"));
    const auto total =
        nlohmann::json::parse(bench_json(report))["results"][0]["modes"][1]["speed_up"]["total"];
    CHECK(total["value"] == 2);
    CHECK(total["low"].is_null());
    CHECK(total["high"].is_null());
  }
}

TEST_CASE("weights that are shared have no time of their own") {
  BenchReport report = sample_report();
  report.modes[1].load_ms.reset();
  const std::string text = bench_text(report);
  CHECK(says(text, "cuda:0, fp32; cuda x; loaded in 700.0 ms\n"));
  CHECK(says(text, "cuda:0, bf16; cuda y; weights shared\n"));
  CHECK(nlohmann::json::parse(bench_json(report))["modes"][1]["load_ms"].is_null());
}

TEST_CASE("the GPU's line has the state of the GPU that it names") {
  BenchReport report = sample_report();
  for (RunSample& sample : report.results[0].modes[1].samples) sample.gpu->sm_mhz = 1111;
  CHECK(says(bench_text(report), "Some GPU, driver 580.1; at the end SM 1900 of 1980 MHz"));
}

TEST_CASE("no speed-up is printed for other answers") {
  BenchReport report = sample_report();
  report.results[0].modes[1].drift = {0.05, "request 1, question q: candidate 1 went away"};
  const std::string text = bench_text(report);
  CHECK_FALSE(says(text, "times as fast"));
  CHECK(says(text,
             "no speed-up is given, the answers differ by 0.05, more than 0.01: request 1, "
             "question q: candidate 1 went away"));
  const auto json = nlohmann::json::parse(bench_json(report));
  CHECK(json["results"][0]["modes"][1]["speed_up"].is_null());
  report.results[0].modes[1].drift.largest = std::numeric_limits<double>::infinity();
  CHECK(nlohmann::json::parse(bench_json(report))["results"][0]["modes"][1]["drift"]["largest"]
            .is_null());
}

TEST_CASE("the JSON says the same") {
  const auto json = nlohmann::json::parse(bench_json(sample_report()));
  CHECK(json["schema"] == "jemm-bench/1");
  CHECK(json["environment"]["gpu"]["name"] == "Some GPU");
  const auto& mode = json["results"][0]["modes"][1];
  CHECK(mode["n"] == 12);
  CHECK(mode["total_ms"]["median"] == 10);
  CHECK(mode["total_ms"]["p99"].is_null());
  CHECK(mode["total_ms"]["samples"].size() == 12);
  CHECK(mode["engine_ms"]["median"] == 7.5);
  CHECK(mode["first_ms"] == 99);
  CHECK(mode["floor_ms"] == 3);
  CHECK(mode["speed_up"]["total"]["value"] == 2);
  CHECK(mode["answers"][0][0] == 0.7);
  double sum = 0;
  for (const auto& stage : mode["stages_ms"]) sum += stage.get<double>();
  CHECK(sum == doctest::Approx(10));
}

TEST_CASE("a sample is a line of JSON") {
  const RunSample sample = sample_report().results[0].modes[0].samples[0];
  const std::string line = sample_json("100 tokens", "b", RunKind::kWarmUp, sample);
  CHECK(line.find('\n') == line.size() - 1);
  const auto json = nlohmann::json::parse(line);
  CHECK(json["run"] == "warmup");
  CHECK(json["stages_ms"]["text"] == 15);
  CHECK(json["overlap_ms"] == 0);
  CHECK(json["gpu"]["sm_mhz"] == 1900);
}

}  // namespace jemm

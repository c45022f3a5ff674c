#include "sample_report.h"

namespace jemm::testing {
namespace {

Series series_of(double ms) {
  RunSample sample{.total_ms = ms,
                   .engine_ms = 0.75 * ms,
                   .stages = {},
                   .work = {.pass_rows = {100}},
                   .gpu = GpuState{.sm_mhz = 1900,
                                   .memory_mhz = 3200,
                                   .celsius = 40,
                                   .watts = 500,
                                   .used_bytes = 50'000'000'000}};
  sample.stages[Stage::kTokenize] = 0.25 * ms;
  sample.stages[Stage::kText] = 0.75 * ms;
  Series series{.first = sample, .samples = {}, .drift = {}, .answers = {}};
  series.answers = {{"request 1, question q", "", {0.7, 0.3}}};
  series.first.total_ms = 99;
  for (int i = 0; i < 12; ++i) series.samples.push_back(sample);
  return series;
}

}  // namespace

BenchReport sample_report() {
  BenchReport report;
  report.environment = {
      .date = "2026-12-03T07:00:00Z",
      .version = "jemm 0.1.0",
      .build = "Release, GNU 12.2.0, CUDA",
      .program_sha256 = "0123456789abcdef",
      .cpu = "Some Processor",
      .n_processors = 16,
      .governor = "",
      .load_before = 0.5,
      .load_after = 1.5,
      .gpu = GpuFacts{.name = "Some GPU", .driver = "580.1", .unwatched = "", .max_sm_mhz = 1980}};
  report.model = {.name = "exported", .fingerprint = "abcd", .is_toy = false};
  report.limits = {.seconds = 2, .n_runs = 0, .n_warm_up = 2};
  report.max_drift = 0.01;
  report.modes = {{.name = "precision=fp32",
                   .setup = "cuda:0, fp32",
                   .weights = "abcd",
                   .engine = "cuda x abcd",
                   .load_ms = 700},
                  {.name = "precision=bf16",
                   .setup = "cuda:0, bf16",
                   .weights = "abcd",
                   .engine = "cuda y abcd",
                   .load_ms = 800}};
  report.results.push_back({.workload = {.name = "100 tokens",
                                         .sha256 = "cafe",
                                         .n_requests = 1,
                                         .n_refused = 0,
                                         .n_questions = 1,
                                         .n_tokens = 100},
                            .modes = {series_of(20), series_of(10)},
                            .operations = {1e9, 1e9},
                            .floor_ms = {std::nullopt, 3.0}});
  return report;
}

}  // namespace jemm::testing

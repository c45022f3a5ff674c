// What a run of bench knows at its end, and how that is told: text, JSON, doubts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "bench/statistics.h"

namespace jemm {

/// What the program ran on, as far as it could be found out. Empty texts: unknown.
struct GpuFacts {
  std::string name, driver;
  std::string unwatched;  ///< why clocks and throttling were not read; empty: they were
  unsigned max_sm_mhz = 0;
  unsigned n_other_processes = 0;  ///< that computed on it before this one did
  std::uint64_t other_bytes = 0;   ///< of its memory that was taken then
};

struct Environment {
  std::string date;     ///< UTC, "2026-12-03T07:00:00Z"
  std::string version;  ///< "jemm 0.1.0"
  std::string build;    ///< "Release, GNU 12.2.0, CUDA"
  std::string program_sha256;
  std::string cpu;
  unsigned n_processors = 0;
  std::string governor;    ///< of the processor's clock
  double load_before = 0;  ///< load averages of a minute
  double load_after = 0;
  std::optional<GpuFacts> gpu;  ///< when a mode runs on one
};

struct BenchModel {
  std::string name;         ///< as on the command line
  std::string fingerprint;  ///< of the weights
  bool is_toy = false;
};

/// A setting under which everything is run.
struct BenchMode {
  std::string name;     ///< "deterministic=on"; empty when nothing is compared
  std::string setup;    ///< what times depend on: "cpu, fp32, 2 threads, passes of 2048 rows"
  std::string weights;  ///< their fingerprint
  std::string engine;   ///< its fingerprint, the weights' included
  std::optional<double> load_ms;  ///< to open weights and engine; none: the weights are shared
};

struct Workload {
  std::string name;    ///< "512 tokens, 4 candidates", "requests.jsonl"
  std::string sha256;  ///< of the request bodies: equal workloads have equal ones
  std::size_t n_requests = 1;
  std::size_t n_refused = 0;
  std::size_t n_questions = 1;
  std::size_t n_tokens = 0;  ///< of all prompts
};

struct Result {
  Workload workload;
  std::vector<Series> modes;                    ///< each with one sample at least
  std::vector<double> operations;               ///< of one run, by mode
  std::vector<std::optional<double>> floor_ms;  ///< likewise
};

struct BenchReport {
  Environment environment;
  BenchModel model;
  MeasureLimits limits;
  double max_drift = 0;
  std::vector<BenchMode> modes;
  std::vector<Result> results;
};

/// Share of a mode's time that is spent outside the engine, between the medians.
double idle_share(const Series& series);
/// Means over the samples: of each stage, of what two stages share, and of what is in none.
struct StageMeans {
  StageTimes stages;
  double overlap_ms = 0;
  double other_ms = 0;
};
StageMeans stage_means(const Series& series);

/// How a mode compares with mode 0.
struct Comparison {
  Ratio total, engine;    ///< time of mode 0 / time of the mode: above 1 it is faster
  Drift drift;            ///< the larger one of both modes, against mode 0's first answers
  bool is_sound = false;  ///< the drift is at most report.max_drift: only then speed counts
};
Comparison compare_modes(const Result& result, std::size_t mode, double max_drift);

/// Everything that should make a reader careful, a sentence each.
std::vector<std::string> doubts(const BenchReport& report);

/// " (0.95 to 1.02)", or that there are too few runs for an interval.
std::string interval_text(const Ratio& ratio);

std::string bench_text(const BenchReport& report);
/// "jemm-bench/1" (docs/bench.md), with a line feed.
std::string bench_json(const BenchReport& report);
/// One JSON line with a line feed.
std::string sample_json(const std::string& workload, const std::string& mode, RunKind kind,
                        const RunSample& sample);

}  // namespace jemm

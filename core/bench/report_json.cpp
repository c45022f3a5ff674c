// The report and its samples for programs: "jemm-bench/1".
#include <cmath>

#include <nlohmann/json.hpp>

#include "bench/baseline.h"
#include "bench/report.h"

namespace jemm {
namespace {

using Json = nlohmann::ordered_json;

Json optional(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// JSON has no infinity: outputs that cannot be compared have no number.
Json drift_json(const Drift& drift) {
  return {{"largest", std::isfinite(drift.largest) ? Json(drift.largest) : Json(nullptr)},
          {"where", drift.where}};
}

Json ratio_json(const Ratio& ratio) {
  const auto& interval = ratio.interval;
  return {{"value", ratio.value},
          {"low", interval ? Json(interval->low) : Json(nullptr)},
          {"high", interval ? Json(interval->high) : Json(nullptr)}};
}

/// A list of probabilities for an answer, null for a refusal.
Json answers_json(const Outputs& answers) {
  Json json = Json::array();
  for (const Output& answer : answers) {
    json.push_back(answer.refusal.empty() ? Json(answer.probabilities) : Json(nullptr));
  }
  return json;
}

Json times_json(const std::vector<double>& values) {
  const Summary summary = summarise(values);
  return {{"median", summary.median},
          {"p10", summary.p10},
          {"p90", summary.p90},
          {"p99", optional(summary.p99)},
          {"samples", values}};
}

Json gpu_json(const GpuFacts& gpu) {
  return {{"name", gpu.name},
          {"driver", gpu.driver},
          {"unwatched", gpu.unwatched},
          {"max_sm_mhz", gpu.max_sm_mhz},
          {"other_processes", gpu.n_other_processes},
          {"other_bytes", gpu.other_bytes}};
}

Json environment_json(const Environment& environment) {
  return {{"version", environment.version},
          {"build", environment.build},
          {"program_sha256", environment.program_sha256},
          {"cpu", environment.cpu},
          {"processors", environment.n_processors},
          {"governor", environment.governor},
          {"load_before", environment.load_before},
          {"load_after", environment.load_after},
          {"gpu", environment.gpu ? gpu_json(*environment.gpu) : Json(nullptr)}};
}

Json stages_json(const StageTimes& stages, double other_ms) {
  Json json;
  for (std::size_t i = 0; i < kStages; ++i) json[kStageNames[i]] = stages.stage_ms[i];
  json["other"] = other_ms;
  return json;
}

Json series_json(const BenchReport& report, const Result& result, std::size_t mode) {
  const Series& series = result.modes[mode];
  const StageMeans means = stage_means(series);
  const Work& work = series.samples.front().work;
  Json json = {{"mode", report.modes[mode].name},
               {"setup", report.modes[mode].setup},
               {"weights", report.modes[mode].weights},
               {"n", series.samples.size()},
               {"total_ms", times_json(total_times(series))},
               {"engine_ms", times_json(engine_times(series))},
               {"first_ms", series.first.total_ms},
               {"stages_ms", stages_json(means.stages, means.other_ms)},
               {"overlap_ms", means.overlap_ms},
               {"passes", work.pass_rows.size()},
               {"rows", work.n_rows()},
               {"patches", work.n_patches},
               {"operations", result.operations[mode]},
               {"idle", idle_share(series)},
               {"floor_ms", optional(result.floor_ms[mode])},
               {"drift", drift_json(series.drift)},
               {"answers", answers_json(series.answers)}};
  if (mode == 0) return json;
  const Comparison comparison = compare_modes(result, mode, report.max_drift);
  json["speed_up"] = comparison.is_sound ? Json{{"total", ratio_json(comparison.total)},
                                                {"engine", ratio_json(comparison.engine)}}
                                         : Json(nullptr);
  return json;
}

Json result_json(const BenchReport& report, const Result& result) {
  const Workload& workload = result.workload;
  Json modes = Json::array();
  for (std::size_t i = 0; i < result.modes.size(); ++i) {
    modes.push_back(series_json(report, result, i));
  }
  return {{"workload",
           {{"name", workload.name},
            {"sha256", workload.sha256},
            {"requests", workload.n_requests},
            {"refused", workload.n_refused},
            {"questions", workload.n_questions},
            {"tokens", workload.n_tokens}}},
          {"modes", modes}};
}

std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string bench_json(const BenchReport& report) {
  Json json = {{"schema", kBenchSchema},
               {"date", report.environment.date},
               {"environment", environment_json(report.environment)},
               {"model",
                {{"name", report.model.name},
                 {"fingerprint", report.model.fingerprint},
                 {"toy", report.model.is_toy}}},
               {"limits",
                {{"seconds", report.limits.seconds},
                 {"runs", report.limits.n_runs},
                 {"warmup", report.limits.n_warm_up},
                 {"max_drift", report.max_drift}}},
               {"modes", Json::array()},
               {"results", Json::array()},
               {"doubts", doubts(report)}};
  for (const BenchMode& mode : report.modes) {
    json["modes"].push_back({{"name", mode.name},
                             {"setup", mode.setup},
                             {"weights", mode.weights},
                             {"engine", mode.engine},
                             {"load_ms", optional(mode.load_ms)}});
  }
  for (const Result& result : report.results)
    json["results"].push_back(result_json(report, result));
  return dump(json, 1);
}

std::string sample_json(const std::string& workload, const std::string& mode, RunKind kind,
                        const RunSample& sample) {
  static constexpr const char* kKinds[] = {"first", "warmup", "measured"};
  Json json = {{"workload", workload},
               {"mode", mode},
               {"run", kKinds[static_cast<int>(kind)]},
               {"total_ms", sample.total_ms},
               {"engine_ms", sample.engine_ms},
               {"stages_ms", stages_json(sample.stages, sample.other_ms())},
               {"overlap_ms", sample.overlap_ms},
               {"pass_rows", sample.work.pass_rows}};
  if (sample.gpu) {
    json["gpu"] = {
        {"sm_mhz", sample.gpu->sm_mhz},         {"memory_mhz", sample.gpu->memory_mhz},
        {"celsius", sample.gpu->celsius},       {"watts", sample.gpu->watts},
        {"used_bytes", sample.gpu->used_bytes}, {"throttle_reasons", sample.gpu->throttle_reasons}};
  }
  return dump(json, -1);
}

}  // namespace jemm

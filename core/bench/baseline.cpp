#include "bench/baseline.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace jemm {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostBytes = std::size_t{64} << 20;
constexpr int kDeepest = 8;  ///< levels; a report has 7
constexpr std::size_t kMostValues = std::size_t{4} << 20;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Members of a report's JSON, or a refusal that names file and member.
class Fields {
 public:
  explicit Fields(const std::string& file) : file_(file) {}

  [[noreturn]] void refuse(const std::string& why) const {
    fail(ErrorKind::kInput, "--baseline {} {}", file_, why);
  }
  const Json& member(const Json& object, const char* key) const {
    const auto at = object.is_object() ? object.find(key) : object.end();
    if (!object.is_object() || at == object.end()) refuse(fmt::format("has no \"{}\"", key));
    return *at;
  }
  std::string text(const Json& object, const char* key) const {
    const Json& value = member(object, key);
    if (!value.is_string()) refuse(fmt::format("has a \"{}\" that is no text", key));
    return value.get<std::string>();
  }
  double number(const Json& object, const char* key) const {
    const Json& value = member(object, key);
    if (!value.is_number()) refuse(fmt::format("has a \"{}\" that is no number", key));
    return value.get<double>();
  }
  const Json& list(const Json& object, const char* key) const {
    const Json& value = member(object, key);
    if (!value.is_array()) refuse(fmt::format("has a \"{}\" that is no list", key));
    return value;
  }
  std::vector<double> times(const Json& mode) const {
    const Json& samples = list(member(mode, "total_ms"), "samples");
    if (samples.size() > kMostRuns) {
      refuse(fmt::format("has {} samples of a mode, more than {}", samples.size(), kMostRuns));
    }
    std::vector<double> values;
    for (const Json& value : samples) {
      const double ms = value.is_number() ? value.get<double>() : -1;
      if (!(ms > 0) || !std::isfinite(ms)) refuse("has a sample that is no time");
      values.push_back(ms);
    }
    if (values.empty()) refuse("has a mode without samples");
    return values;
  }
  /// Without names. A probability that was not finite is null, as JSON has it.
  Outputs answers(const Json& mode) const {
    Outputs outputs;
    std::size_t n = 0;
    for (const Json& answer : list(mode, "answers")) {
      n += std::max<std::size_t>(answer.size(), 1);
      if (n > kMostAnswers) {
        refuse(fmt::format("has more than {} probabilities of a mode", kMostAnswers));
      }
      Output& output = outputs.emplace_back();
      if (answer.is_null()) output.refusal = kRefused;
      if (!answer.is_null() && !answer.is_array()) refuse("has an answer that is no list");
      for (const Json& value : answer) {
        if (!value.is_number() && !value.is_null()) refuse("has a probability that is no number");
        output.probabilities.push_back(value.is_null() ? kNaN : value.get<double>());
      }
    }
    return outputs;
  }

 private:
  const std::string& file_;
};

/// With the names of the outputs of today, which a report does not have.
Drift drift_since(Outputs then, const Outputs& now) {
  for (std::size_t i = 0; i < std::min(then.size(), now.size()); ++i) then[i].name = now[i].name;
  return outputs_drift(then, now);
}

std::string processor_text(double n, const std::string& name) {
  return fmt::format("{} x {}", n, name);
}

}  // namespace

Baseline::Baseline(std::string_view text, const std::string& file) : file_(file) {
  const Fields fields(file_);
  if (text.size() > kMostBytes) fields.refuse("is larger than a report");
  std::size_t n_values = 0;  // each of them takes more memory than its text
  const auto check_size = [&](int depth, Json::parse_event_t /*event*/, Json& /*value*/) {
    if (depth > kDeepest) fields.refuse("is deeper than a report");
    if (++n_values > kMostValues) fields.refuse("has more values than a report");
    return true;
  };
  const Json json = Json::parse(text, check_size, false);
  if (!json.is_object() || json.value("schema", Json()) != kBenchSchema) {
    fields.refuse(fmt::format("is no {} report", kBenchSchema));
  }
  const Json& environment = fields.member(json, "environment");
  const Json& gpu = fields.member(environment, "gpu");
  ground_ = {.processor = processor_text(fields.number(environment, "processors"),
                                         fields.text(environment, "cpu")),
             .gpu = gpu.is_null() ? "none" : fields.text(gpu, "name"),
             .build = fields.text(environment, "build"),
             .model = fields.text(fields.member(json, "model"), "fingerprint")};
  for (const Json& result : fields.list(json, "results")) {
    const std::string sha256 = fields.text(fields.member(result, "workload"), "sha256");
    for (const Json& mode : fields.list(result, "modes")) {
      results_[{sha256, fields.text(mode, "setup"), fields.text(mode, "weights")}] = {
          .total_ms = fields.times(mode), .answers = fields.answers(mode)};
    }
  }
}

Baseline::Ground Baseline::ground_of(const BenchReport& report) {
  const Environment& environment = report.environment;
  return {.processor = processor_text(environment.n_processors, environment.cpu),
          .gpu = environment.gpu ? environment.gpu->name : "none",
          .build = environment.build,
          .model = report.model.fingerprint};
}

void Baseline::check_same_ground(const BenchReport& report) const {
  const Ground now = ground_of(report);
  const auto check = [&](std::string_view what, const std::string Ground::*part) {
    if (ground_.*part == now.*part) return;
    fail(ErrorKind::kUsage, "--baseline {} is of another {}: {}, not {}", file_, what,
         ground_.*part, now.*part);
  };
  check("processor", &Ground::processor);
  check("GPU", &Ground::gpu);
  check("kind of build", &Ground::build);
  check("model", &Ground::model);
}

BaselineComparison Baseline::compare(const BenchReport& report, double max_slowdown,
                                     const std::function<bool()>& stop) const {
  BaselineComparison comparison;
  for (const Result& result : report.results) {
    for (std::size_t i = 0; i < result.modes.size() && !stop(); ++i) {
      const BenchMode& mode = report.modes[i];
      const std::string name =
          mode.name.empty() ? result.workload.name : result.workload.name + ", " + mode.name;
      const auto found = results_.find({result.workload.sha256, mode.setup, mode.weights});
      if (found == results_.end()) {
        comparison.unmatched.push_back(name);
        continue;
      }
      const auto& [total_ms, answers] = found->second;
      Slowdown slowdown{name, drift_since(answers, result.modes[i].answers), {}, false};
      if (slowdown.drift.largest <= report.max_drift) {
        slowdown.ratio = ratio_of_medians(total_times(result.modes[i]), total_ms);
        slowdown.is_over = !(slowdown.ratio->value <= max_slowdown);
      }
      comparison.slowdowns.push_back(std::move(slowdown));
    }
  }
  return comparison;
}

std::string baseline_text(const BaselineComparison& comparison, double max_slowdown,
                          double max_drift) {
  std::string text = "\n";
  for (const Slowdown& slowdown : comparison.slowdowns) {
    if (!slowdown.ratio) {
      text += fmt::format(
          "{}: no ratio is given, the answers DIFFER from the baseline's by {:.4g}, more than "
          "{:.4g}: {}\n",
          slowdown.name, slowdown.drift.largest, max_drift, slowdown.drift.where);
      continue;
    }
    const Ratio& ratio = *slowdown.ratio;
    text += fmt::format("{}: {:.3f} times the baseline's time{}", slowdown.name, ratio.value,
                        interval_text(ratio));
    if (slowdown.is_over) {
      text += fmt::format(", SLOWER than the limit of {:.3g}", max_slowdown);
      if (ratio.interval && ratio.interval->low <= 1) text += ", though the interval holds 1";
    }
    text += "\n";
  }
  for (const std::string& name : comparison.unmatched) {
    text += fmt::format("{}: not in the baseline\n", name);
  }
  return text;
}

}  // namespace jemm

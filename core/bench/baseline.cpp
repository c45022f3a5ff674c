#include "bench/baseline.h"

#include <cmath>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace jemm {
namespace {

using Json = nlohmann::json;

/// Total times by the request bytes' hash and the mode's setup.
using Times = std::map<std::pair<std::string, std::string>, std::vector<double>>;

class BaselineReader {
 public:
  BaselineReader(std::string_view text, const std::string& file) : file_(file) {
    json_ = Json::parse(text, nullptr, false);
    if (json_.is_discarded() || !json_.is_object() ||
        json_.value("schema", Json()) != kBenchSchema) {
      refuse(fmt::format("is no {} report", kBenchSchema));
    }
  }

  void check_same_ground(const BenchReport& report) const {
    const Environment& now = report.environment;
    const auto check = [&](std::string_view what, const std::string& before,
                           const std::string& after) {
      if (before == after) return;
      fail(ErrorKind::kUsage, "--baseline {} is of another {}: {}, not {}", file_, what, before,
           after);
    };
    const Json& then = member(json_, "environment");
    check("processor", processor(text(then, "cpu"), number(then, "processors")),
          processor(now.cpu, now.n_processors));
    const Json& gpu = member(then, "gpu");
    check("GPU", gpu.is_null() ? "none" : text(gpu, "name"), now.gpu ? now.gpu->name : "none");
    check("kind of build", text(then, "build"), now.build);
    check("model", text(member(json_, "model"), "fingerprint"), report.model.fingerprint);
  }

  Times times() const {
    Times times;
    for (const Json& result : list(json_, "results")) {
      const std::string sha256 = text(member(result, "workload"), "sha256");
      for (const Json& mode : list(result, "modes")) {
        std::vector<double>& values = times[{sha256, text(mode, "setup")}];
        for (const Json& value : list(member(mode, "total_ms"), "samples")) {
          if (!value.is_number() || !(value.get<double>() > 0) ||
              !std::isfinite(value.get<double>())) {
            refuse("has a sample that is no time");
          }
          values.push_back(value.get<double>());
        }
        if (values.empty()) refuse("has a mode without samples");
      }
    }
    return times;
  }

 private:
  static std::string processor(const std::string& name, double n) {
    return fmt::format("{} x {}", n, name);
  }

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
    if (!value.is_string()) refuse(fmt::format("\"{}\" is no text", key));
    return value.get<std::string>();
  }
  double number(const Json& object, const char* key) const {
    const Json& value = member(object, key);
    if (!value.is_number()) refuse(fmt::format("\"{}\" is no number", key));
    return value.get<double>();
  }
  const Json& list(const Json& object, const char* key) const {
    const Json& value = member(object, key);
    if (!value.is_array()) refuse(fmt::format("\"{}\" is no list", key));
    return value;
  }

  const std::string& file_;
  Json json_;
};

}  // namespace

BaselineComparison compare_baseline(const BenchReport& report, std::string_view json,
                                    const std::string& file, double max_slowdown) {
  const BaselineReader reader(json, file);
  reader.check_same_ground(report);
  const Times before = reader.times();
  BaselineComparison comparison;
  for (const Result& result : report.results) {
    for (std::size_t i = 0; i < result.modes.size(); ++i) {
      const BenchMode& mode = report.modes[i];
      const std::string name =
          mode.name.empty() ? result.workload.name : result.workload.name + ", " + mode.name;
      const auto found = before.find({result.workload.sha256, mode.setup});
      if (found == before.end()) {
        comparison.unmatched.push_back(name);
        continue;
      }
      const Ratio ratio = ratio_of_medians(total_times(result.modes[i]), found->second);
      comparison.slowdowns.push_back({name, ratio, !(ratio.value <= max_slowdown)});
    }
  }
  return comparison;
}

std::string baseline_text(const BaselineComparison& comparison, double max_slowdown) {
  std::string text = "\n";
  for (const Slowdown& slowdown : comparison.slowdowns) {
    const Ratio& ratio = slowdown.ratio;
    text += fmt::format("{}: {:.3f} times the baseline's time ({:.3f} to {:.3f})", slowdown.name,
                        ratio.value, ratio.low, ratio.high);
    if (slowdown.is_over) {
      text += fmt::format(", SLOWER than the limit of {:.3g}", max_slowdown);
      if (ratio.low <= 1) text += ", though the interval holds 1";
    }
    text += "\n";
  }
  for (const std::string& name : comparison.unmatched) {
    text += fmt::format("{}: not in the baseline\n", name);
  }
  return text;
}

}  // namespace jemm

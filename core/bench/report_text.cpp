// The report for people.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/report.h"

namespace jemm {
namespace {

/// Rows of cells, the first of them the titles; columns as wide as their widest cell, the first
/// two to the left, the others to the right.
std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  constexpr std::size_t kLeftColumns = 2;
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (widths[i] == 0) continue;
      line += i < kLeftColumns ? fmt::format("{:<{}}  ", row[i], widths[i])
                               : fmt::format("{:>{}}  ", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string ms(double value) {
  return value < 10 ? fmt::format("{:.3f}", value)
                    : fmt::format("{:.{}f}", value,
                                  value < 100    ? 2
                                  : value < 1000 ? 1
                                                 : 0);
}

class ReportText {
 public:
  explicit ReportText(const BenchReport& report) : report_(report) {}

  std::string run() {
    return head() + "\n" + times() + "\n" + stages() + comparisons() + doubt_list();
  }

 private:
  std::string head() const {
    const Environment& environment = report_.environment;
    std::string text = fmt::format(
        "{}, {}, program {}\n{}, {} processors, load {:.1f} before, {:.1f} after; {}\n",
        environment.version, environment.build, environment.program_sha256.substr(0, 12),
        environment.cpu, environment.n_processors, environment.load_before, environment.load_after,
        environment.date);
    if (environment.gpu) text += gpu_line(*environment.gpu);
    text += fmt::format("model {}, {}\n", report_.model.name, report_.model.fingerprint);
    for (const BenchMode& mode : report_.modes) {
      text += fmt::format(
          "{}{}; {}; {}\n", mode.name.empty() ? "" : mode.name + ": ", mode.setup,
          engine_name(mode),
          mode.load_ms ? fmt::format("loaded in {} ms", ms(*mode.load_ms)) : "weights shared");
    }
    return text;
  }

  /// The engine's fingerprint without the weights', which the model's line has.
  static std::string engine_name(const BenchMode& mode) {
    std::string name = mode.engine;
    if (name.ends_with(" " + mode.weights)) name.resize(name.size() - mode.weights.size() - 1);
    return name;
  }

  std::string gpu_line(const GpuFacts& gpu) const {
    std::string text = fmt::format("{}, driver {}", gpu.name, gpu.driver);
    if (const std::optional<GpuState> last = last_state()) {
      text += fmt::format(
          "; at the end SM {} of {} MHz, memory {} MHz, {} C, {:.0f} W, {:.1f} GB in use",
          last->sm_mhz, gpu.max_sm_mhz, last->memory_mhz, last->celsius, last->watts,
          static_cast<double>(last->used_bytes) / 1e9);
    }
    return text + "\n";
  }

  /// Of the first mode's GPU that has one, which is the one that the line names.
  std::optional<GpuState> last_state() const {
    for (const Series& series : report_.results.back().modes) {
      if (series.samples.back().gpu) return series.samples.back().gpu;
    }
    return std::nullopt;
  }

  std::string times() const {
    std::vector<std::vector<std::string>> rows = {
        {"milliseconds", "", "n", "median", "p10", "p90", "p99", "engine", "first", "requests/s",
         "rows", "rows/s", "TFLOP/s", "idle", has_floor() ? "x floor" : ""}};
    for (const Result& result : report_.results) {
      for (std::size_t i = 0; i < result.modes.size(); ++i) rows.push_back(time_row(result, i));
    }
    return table_text(rows);
  }

  bool has_floor() const {
    for (const Result& result : report_.results) {
      for (const std::optional<double>& floor : result.floor_ms) {
        if (floor) return true;
      }
    }
    return false;
  }

  std::vector<std::string> time_row(const Result& result, std::size_t mode) const {
    const Series& series = result.modes[mode];
    const Summary total = summarise(total_times(series));
    const double engine = summarise(engine_times(series)).median;
    const double a_second = 1000 / total.median;
    const auto n_rows = static_cast<double>(series.samples.front().work.n_rows());
    const std::optional<double> floor = result.floor_ms[mode];
    return {result.workload.name,
            report_.modes[mode].name,
            std::to_string(total.n),
            ms(total.median),
            ms(total.p10),
            ms(total.p90),
            total.p99 ? ms(*total.p99) : "-",
            ms(engine),
            ms(series.first.total_ms),
            fmt::format("{:.4g}", static_cast<double>(result.workload.n_requests) * a_second),
            fmt::format("{:.0f}", n_rows),
            fmt::format("{:.0f}", n_rows * a_second),
            fmt::format("{:.3g}", result.operations[mode] * a_second / 1e12),
            fmt::format("{:.1f} %", 100 * idle_share(series)),
            floor ? fmt::format("{:.2f}", engine / *floor) : ""};
  }

  std::string stages() const {
    std::vector<std::vector<std::string>> rows(1, {"where it goes", ""});
    std::vector<std::size_t> shown;
    for (std::size_t i = 0; i < kStages; ++i) {
      if (!is_shown([i](const StageMeans& means) { return means.stages.stage_ms[i]; })) continue;
      shown.push_back(i);
      rows.front().emplace_back(kStageNames[i]);
    }
    rows.front().emplace_back("other");
    const bool overlaps = is_shown(std::mem_fn(&StageMeans::overlap_ms));
    if (overlaps) rows.front().emplace_back("overlap");
    rows.front().emplace_back("total");
    for (const Result& result : report_.results) {
      for (std::size_t mode = 0; mode < result.modes.size(); ++mode) {
        const StageMeans means = stage_means(result.modes[mode]);
        std::vector<std::string>& row = rows.emplace_back();
        row = {result.workload.name, report_.modes[mode].name};
        for (const std::size_t i : shown) row.push_back(ms(means.stages.stage_ms[i]));
        row.push_back(ms(means.other_ms));
        if (overlaps) row.push_back(ms(-means.overlap_ms));  // so that a row adds up
        row.push_back(ms(means.stages.total_ms));
      }
    }
    return table_text(rows);
  }

  /// Whether a time is more than 0.000 somewhere.
  template <typename Time>
  bool is_shown(const Time& time) const {
    constexpr double kShownMs = 0.0005;
    for (const Result& result : report_.results) {
      for (const Series& series : result.modes) {
        if (time(stage_means(series)) >= kShownMs) return true;
      }
    }
    return false;
  }

  std::string comparisons() const {
    if (report_.modes.size() < 2) return "";
    std::string text = "\n";
    for (const Result& result : report_.results) {
      for (std::size_t mode = 1; mode < result.modes.size(); ++mode) {
        text += comparison_line(result, mode);
      }
    }
    return text;
  }

  std::string comparison_line(const Result& result, std::size_t mode) const {
    const Comparison comparison = compare_modes(result, mode, report_.max_drift);
    const std::string names = fmt::format("{}: {} against {}: ", result.workload.name,
                                          report_.modes[mode].name, report_.modes[0].name);
    if (!comparison.is_sound) {
      return names + fmt::format(
                         "no speed-up is given, the answers differ by {:.4g}, more than "
                         "{:.4g}: {}\n",
                         comparison.drift.largest, report_.max_drift, comparison.drift.where);
    }
    const Ratio& total = comparison.total;
    const bool may_be_chance = total.interval && total.interval->holds(1);
    const auto ratio = [](const Ratio& r) {
      return fmt::format("{:.3f}{}", r.value, interval_text(r));
    };
    return names +
           fmt::format("{} times as fast{}, the engine {}; answers differ by {:.2g} at most\n",
                       ratio(total), may_be_chance ? ", which may be chance" : "",
                       ratio(comparison.engine), comparison.drift.largest);
  }

  std::string doubt_list() const {
    std::string text;
    for (const std::string& doubt : doubts(report_)) text += "doubtful: " + doubt + "\n";
    return text.empty() ? text : "\n" + text;
  }

  const BenchReport& report_;
};

}  // namespace

std::string interval_text(const Ratio& ratio) {
  if (!ratio.interval) return " (too few runs to tell)";
  return fmt::format(" ({:.3f} to {:.3f})", ratio.interval->low, ratio.interval->high);
}

std::string bench_text(const BenchReport& report) {
  return ReportText(report).run();
}

}  // namespace jemm

// What each plot of report.html shows.
#include "judge/html_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "judge/render_text.h"
#include "judge/svg.h"
#include "judge/tables.h"

namespace jemm {
namespace {

constexpr double kWide = 1040, kHalf = 510, kHigh = 300;

std::vector<const StageSummary*> stages_with_rms(const Report& report) {
  std::vector<const StageSummary*> stages;
  for (const StageSummary& stage : report.stages) {
    const bool has_rms = is_tensor(stage.stage.kind) || stage.stage.kind == StageKind::kLogits;
    if (has_rms && stage.n_compared > 0) stages.push_back(&stage);
  }
  return stages;
}

/// Names for the axis: layers by number, and only so many that they stay apart.
std::vector<std::string> stage_labels(const std::vector<const StageSummary*>& stages) {
  const int step = stages.size() > 36 ? 4 : 1;
  std::vector<std::string> labels;
  for (const StageSummary* stage : stages) {
    const bool layer = stage->stage.kind == StageKind::kLayer;
    const bool shown = !layer || stage->stage.layer % step == 0;
    labels.push_back(!shown  ? ""
                     : layer ? std::to_string(stage->stage.layer)
                             : stage_name(stage->stage));
  }
  return labels;
}

std::vector<double> stage_values(const std::vector<const StageSummary*>& stages) {
  std::vector<double> values;
  for (const StageSummary* stage : stages) {
    values.push_back(stage->rms.max);
    values.push_back(stage->rms.median);
    if (!stage->rms_gauge) continue;
    if (const auto budget = stage->rms_gauge->budget()) values.push_back(*budget);
    if (stage->rms_gauge->noise) values.push_back(*stage->rms_gauge->noise);
  }
  return values;
}

void draw_stage(Plot& plot, double x, const StageSummary& stage) {
  const std::optional<Gauge>& gauge = stage.rms_gauge;
  const bool over = gauge && gauge->outcome() == Outcome::kOver;
  if (gauge && gauge->noise) plot.segment(x - 0.5, *gauge->noise, x + 0.5, *gauge->noise, "noise");
  if (gauge && gauge->budget()) {
    plot.segment(x - 0.5, *gauge->budget(), x + 0.5, *gauge->budget(), "budget");
  }
  plot.segment(x, stage.rms.median, x, stage.rms.max, "stem");
  plot.mark(x, stage.rms.median, Mark::kDash, "plain", "");
  plot.mark(x, stage.rms.max, over ? Mark::kCross : Mark::kDot, over ? "over" : "plain",
            fmt::format("{}: largest {}, median {}{}", stage_name(stage.stage),
                        number_text(stage.rms.max), number_text(stage.rms.median),
                        gauge ? ", budget " + budget_text(*gauge) : ""));
}

std::string point_title(const AnswerPoint& point) {
  return fmt::format("{}: drift {}, margin {}{}",
                     shortened(printable(place_text(point.case_id, point.question)), 80),
                     number_text(point.drift), number_text(point.margin),
                     point.flipped ? ", winner flips" : "");
}

void draw_answer(Plot& plot, double x, const AnswerPoint& point) {
  if (point.noise_drift) plot.mark(x, *point.noise_drift, Mark::kRing, "own", "");
  plot.mark(x, point.drift, point.flipped ? Mark::kCross : Mark::kDot,
            point.flipped ? "over" : "plain", point_title(point));
}

void answer_legend(Plot& plot, const Report& report) {
  plot.legend(Mark::kDot, "plain", "answer");
  plot.legend(Mark::kCross, "over", "winner flips");
  if (report.noise) plot.legend(Mark::kRing, "own", "reference's own");
}

std::vector<double> drifts(const Report& report) {
  std::vector<double> values;
  for (const AnswerPoint& point : report.points) {
    values.push_back(point.drift);
    if (point.noise_drift) values.push_back(*point.noise_drift);
  }
  return values;
}

std::string breakdown_plot(const Breakdown& breakdown, std::size_t number) {
  std::vector<std::string> names;
  std::vector<double> values;
  for (const Breakdown::Bin& bin : breakdown.bins) {
    names.push_back(shortened(printable(bin.label), 16));
    values.push_back(bin.max);
    values.push_back(bin.mean);
  }
  Plot plot({.id = fmt::format("by{}", number),
             .title = "Drift by " + breakdown.property,
             .description = "Mean and largest drift of the answers of each kind."},
            category_axis(breakdown.property, names), linear_axis("drift", values), kHalf, 260);
  for (std::size_t i = 0; i < breakdown.bins.size(); ++i) {
    const Breakdown::Bin& bin = breakdown.bins[i];
    if (bin.n == 0) continue;
    const double x = static_cast<double>(i) + 0.5;
    const std::string title =
        fmt::format("{}: {}, mean {}, largest {}", names[i], count_text(bin.n, "answer"),
                    number_text(bin.mean), number_text(bin.max));
    plot.bar(x - 0.3, x, bin.mean, "bar-mean", title);
    plot.bar(x, x + 0.3, bin.max, "bar-max", title);
  }
  plot.line_legend("bar-mean thick", "mean");
  plot.line_legend("bar-max thick", "largest");
  return plot.svg();
}

}  // namespace

std::string stage_plot(const Report& report) {
  const std::vector<const StageSummary*> stages = stages_with_rms(report);
  if (stages.empty()) return "";
  Axis x = category_axis("stage; layers by number", stage_labels(stages));
  x.slanted = true;
  Plot plot({.id = "stages",
             .title = "Drift by stage and layer",
             .description = "Largest and median RMS ratio of every stage, with its budget and the "
                            "reference's own noise. The table of stages has the same numbers."},
            x, log_axis("RMS ratio", stage_values(stages)), kWide, kHigh + 40);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    draw_stage(plot, static_cast<double>(i) + 0.5, *stages[i]);
  }
  plot.legend(Mark::kDot, "plain", "largest");
  plot.legend(Mark::kDash, "plain", "median");
  plot.legend(Mark::kCross, "over", "over budget");
  plot.line_legend("budget", "budget");
  plot.line_legend("noise", "reference's own");
  return plot.svg();
}

std::string length_plot(const Report& report) {
  std::vector<double> lengths;
  for (const AnswerPoint& point : report.points) {
    if (point.n_tokens > 0) lengths.push_back(static_cast<double>(point.n_tokens));
  }
  if (lengths.empty()) return "";
  Plot plot({.id = "length",
             .title = "Drift against prompt length",
             .description = "One mark an answer; both axes are logarithmic."},
            log_axis("tokens of the prompt", lengths), log_axis("drift", drifts(report)), kHalf,
            kHigh);
  for (const AnswerPoint& point : report.points) {
    if (point.n_tokens > 0) draw_answer(plot, static_cast<double>(point.n_tokens), point);
  }
  answer_legend(plot, report);
  return plot.svg();
}

std::string margin_plot(const Report& report) {
  if (report.points.empty()) return "";
  std::vector<double> margins;
  for (const AnswerPoint& point : report.points) margins.push_back(point.margin);
  const Axis x = log_axis("margin of the reference", margins);
  const Axis y = log_axis("drift", drifts(report));
  Plot plot({.id = "margin",
             .title = "Drift against the reference's margin",
             .description = "One mark an answer; both axes are logarithmic. Above the line, drift "
                            "reaches half the margin: only there can a winner flip."},
            x, y, kHalf, kHigh);
  const double from = std::max(x.low, 2 * y.low);  // where the line is inside both axes
  const double to = std::min(x.high, 2 * y.high);
  if (from < to) plot.segment(from, from / 2, to, to / 2, "budget");
  for (const AnswerPoint& point : report.points) draw_answer(plot, point.margin, point);
  answer_legend(plot, report);
  plot.line_legend("budget", "half the margin");
  return plot.svg();
}

std::string breakdown_plots(const Report& report) {
  std::string out;
  for (std::size_t i = 0; i < report.breakdowns.size(); ++i) {
    const Breakdown& breakdown = report.breakdowns[i];
    const std::string& property = breakdown.property;
    const bool scattered = property == "tokens" || property == "margin";  // have a scatter plot
    if (!scattered && !breakdown.bins.empty()) {
      out += fmt::format("<figure><figcaption>Drift by {}</figcaption>\n{}</figure>\n",
                         html_text(property), breakdown_plot(breakdown, i));
    }
  }
  return out;
}

std::string distribution_plot(const AnswerPoint& point) {
  constexpr double kRow = 26, kName = 150, kFull = 220;
  const std::size_t n = std::max(point.reference.size(), point.observed.size());
  std::string out = fmt::format(
      R"(<svg class="spread" viewBox="0 0 480 {:.0f}" role="img"><title>{}</title>)",
      kRow * static_cast<double>(n) + 4, html_text("Probabilities: " + point_title(point)));
  const auto value_bar = [&](const std::vector<double>& values, std::size_t i, double y,
                             std::string_view style) {
    if (i >= values.size()) return;
    const double share = std::isfinite(values[i]) ? std::clamp(values[i], 0.0, 1.0) : 0;
    out += fmt::format(R"(<rect x="{}" y="{:.1f}" width="{:.1f}" height="9" class="{}"/>)", kName,
                       y, std::max(share * kFull, 0.5), style);
    out += fmt::format(
        R"(<text x="{:.1f}" y="{:.1f}" class="tick">{}</text>)", kName + share * kFull + 6, y + 8.5,
        std::isfinite(values[i]) ? fmt::format("{:.4f}", values[i]) : number_text(values[i]));
  };
  for (std::size_t i = 0; i < n; ++i) {
    const double y = kRow * static_cast<double>(i) + 3;
    const std::string name =
        i < point.candidates.size() ? point.candidates[i] : fmt::format("#{}", i);
    out += fmt::format(R"(<text x="{}" y="{:.1f}" class="tick end">{}</text>)", kName - 8, y + 13,
                       html_text(shortened(printable(name), 22)));
    value_bar(point.reference, i, y, "bar-reference");
    value_bar(point.observed, i, y + 11, "bar-observed");
  }
  return out + "</svg>\n";
}

std::string share_bar(double share, std::string_view style) {
  constexpr double kWhole = 56, kMost = 72;
  const double length = std::isfinite(share) ? std::clamp(share * kWhole, 0.0, kMost) : kMost;
  return fmt::format(
      R"(<svg class="share" viewBox="0 0 76 10" role="img"><title>{} of the budget</title>)"
      R"(<rect x="0" y="2" width="{:.1f}" height="6" class="bar-{}"/>)"
      R"(<line x1="{}" y1="0" x2="{}" y2="10" class="axis"/></svg>)",
      percent_text(share), length, style, kWhole, kWhole);
}

}  // namespace jemm

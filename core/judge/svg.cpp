// Scales, ticks and shapes of plots.
#include "judge/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "judge/render_text.h"

namespace jemm {
namespace {

constexpr double kLeft = 62, kRight = 14, kTop = 30;
constexpr double kLane = 18;  // pixels beyond the axis
constexpr double kCharacter = 6.2;

struct Extent {
  double low = 0, high = 0;
  bool any = false, zero = false, not_finite = false;
};

Extent extent_of(const std::vector<double>& values, bool positive_only) {
  Extent extent;
  for (const double value : values) {
    if (!std::isfinite(value)) {
      extent.not_finite = true;
    } else if (positive_only && value <= 0) {
      extent.zero = true;
    } else {
      extent.low = extent.any ? std::min(extent.low, value) : value;
      extent.high = extent.any ? std::max(extent.high, value) : value;
      extent.any = true;
    }
  }
  return extent;
}

std::string tick_text(double value) {
  return value >= 1 && value < 1e6 ? fmt::format("{:.0f}", value) : number_text(value);
}

/// 1, 2, 5 times powers of ten, or the powers alone when there are many.
std::vector<Tick> log_ticks(double low, double high) {
  const double decades = std::log10(high) - std::log10(low);
  const int step = std::max(1, static_cast<int>(std::ceil(decades / 8)));
  std::vector<Tick> ticks;
  for (int power = static_cast<int>(std::floor(std::log10(low))); power <= std::log10(high);
       ++power) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10.0, power);
      const bool wanted = factor == 1 ? power % step == 0 : decades < 2.2;
      if (wanted && value >= low && value <= high) ticks.push_back({value, tick_text(value)});
    }
  }
  return ticks;
}

std::string title_element(std::string_view title) {
  return title.empty() ? "" : fmt::format("<title>{}</title>", html_text(title));
}

std::string line(double x0, double y0, double x1, double y1, std::string_view style) {
  return fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>)", x0,
                     y0, x1, y1, style);
}

std::string label(double x, double y, std::string_view style, std::string_view text,
                  std::string_view more = "") {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" class="{}"{}>{}</text>)", x, y, style, more,
                     html_text(text));
}

/// An attribute that turns what stands at (x, y).
std::string turned(int degrees, double x, double y) {
  return fmt::format(" transform=\"rotate({} {:.1f} {:.1f})\"", degrees, x, y);
}

std::string shape(double x, double y, Mark mark, std::string_view style, std::string_view title) {
  const std::string inner = title_element(title);
  switch (mark) {
    case Mark::kDot:
      return fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="2.6" class="dot {}">{}</circle>)", x,
                         y, style, inner);
    case Mark::kRing:
      return fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="3" class="ring {}">{}</circle>)", x,
                         y, style, inner);
    case Mark::kCross:
      return fmt::format(R"(<path d="M{:.1f} {:.1f}l7 7m0 -7l-7 7" class="cross {}">{}</path>)",
                         x - 3.5, y - 3.5, style, inner);
    case Mark::kDash:
      break;
  }
  return fmt::format(R"(<path d="M{:.1f} {:.1f}h7" class="dash {}">{}</path>)", x - 3.5, y, style,
                     inner);
}

}  // namespace

double Axis::position(double value, double lane) const {
  if (!std::isfinite(value)) return 1 + lane;
  if (log && zero_lane && value < low) return -lane;
  if (log && value <= 0) return 0;
  const auto scaled = [this](double v) { return log ? std::log(v) : v; };
  const double share = (scaled(value) - scaled(low)) / (scaled(high) - scaled(low));
  return std::clamp(share, 0.0, 1.0);
}

Axis log_axis(std::string label, const std::vector<double>& values) {
  constexpr double kMargin = 1.25;
  constexpr double kLongest = 1e-6;  // smallest by largest value
  constexpr double kLeast = 1e-300;  // so that dividing by the margin stays a number
  const Extent extent = extent_of(values, true);
  Axis axis{.label = std::move(label), .log = true, .low = 1e-6, .high = 1e-2, .ticks = {}};
  axis.zero_lane = extent.zero;
  if (extent.any) {
    const double largest = std::clamp(extent.high, kLeast, 1e300);
    const double smallest = std::max({extent.low, kLeast, largest * kLongest});
    axis.low = smallest / kMargin;
    axis.high = largest * kMargin;
    if (extent.low < axis.low) {
      axis.zero_lane = true;
      axis.zero_label = fmt::format("<{:.0e}", axis.low);
    }
  }
  axis.not_finite_lane = extent.not_finite;
  axis.ticks = log_ticks(axis.low, axis.high);
  return axis;
}

Axis linear_axis(std::string label, const std::vector<double>& values) {
  const Extent extent = extent_of(values, false);
  Axis axis{.label = std::move(label), .ticks = {}};
  if (extent.any && extent.high > 0) axis.high = std::min(extent.high, 1e300) * 1.05;
  const double rough = axis.high / 5;
  const double unit = std::pow(10.0, std::floor(std::log10(rough)));
  const double step = rough <= 2 * unit ? 2 * unit : rough <= 5 * unit ? 5 * unit : 10 * unit;
  for (int i = 0; i * step <= axis.high; ++i)
    axis.ticks.push_back({i * step, number_text(i * step)});
  axis.not_finite_lane = extent.not_finite;
  return axis;
}

Axis category_axis(std::string label, const std::vector<std::string>& names) {
  Axis axis{.label = std::move(label), .ticks = {}};
  axis.high = std::max(1.0, static_cast<double>(names.size()));
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!names[i].empty()) axis.ticks.push_back({static_cast<double>(i) + 0.5, names[i]});
    axis.slanted = axis.slanted || names[i].size() * names.size() > 60;
  }
  return axis;
}

Plot::Plot(PlotText text, Axis x, Axis y, double width, double height)
    : text_(std::move(text)),
      x_(std::move(x)),
      y_(std::move(y)),
      width_(width),
      height_(height),
      bottom_(height - (x_.slanted ? 76 : 52)),
      legend_x_(kLeft) {}

double Plot::x_pixel(double x) const {
  constexpr double kLabelledLane = 44;  // so that its label stays apart from the next
  const double below = x_.zero_lane ? kLabelledLane : kLane;
  const double wide = width_ - kRight - kLeft - kLane - below;
  const double lane = x < x_.high ? below - 8 : kLane;
  return kLeft + below + wide * x_.position(x, lane / wide);
}

double Plot::y_pixel(double y) const {
  const double below = y_.log ? kLane : 0;  // where zero has its lane
  const double high = bottom_ - kTop - kLane - below;
  return bottom_ - below - high * y_.position(y, kLane / high * 0.8);
}

void Plot::mark(double x, double y, Mark mark, std::string_view style, std::string_view title) {
  body_ += shape(x_pixel(x), y_pixel(y), mark, style, title) + "\n";
}

void Plot::segment(double x0, double y0, double x1, double y1, std::string_view style) {
  body_ += line(x_pixel(x0), y_pixel(y0), x_pixel(x1), y_pixel(y1), style) + "\n";
}

void Plot::bar(double x0, double x1, double y, std::string_view style, std::string_view title) {
  const double left = x_pixel(x0);
  const double top = y_pixel(y);
  body_ += fmt::format(
      R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="{}">{}</rect>)", left,
      top, x_pixel(x1) - left, std::max(bottom_ - top, 0.0), style, title_element(title));
  body_ += '\n';
}

void Plot::legend_label(std::string_view text) {
  legend_ += label(legend_x_ + 16, 14, "key", text);
  legend_x_ += 32 + kCharacter * static_cast<double>(text.size());
}

void Plot::legend(Mark mark, std::string_view style, std::string_view label) {
  legend_ += shape(legend_x_ + 6, 10, mark, style, "");
  legend_label(label);
}

void Plot::line_legend(std::string_view style, std::string_view label) {
  legend_ += line(legend_x_ - 2, 10, legend_x_ + 12, 10, style);
  legend_label(label);
}

std::string Plot::grid() const {
  const double right = width_ - kRight;
  std::string out;
  const auto y_tick = [&](double y, std::string_view text) {
    out += line(kLeft, y, right, y, "grid");
    out += label(kLeft - 6, y + 3.5, "tick end", text);
  };
  for (const Tick& tick : y_.ticks) y_tick(y_pixel(tick.value), tick.label);
  if (y_.zero_lane) y_tick(y_pixel(0), y_.zero_label);
  if (y_.not_finite_lane) y_tick(y_pixel(HUGE_VAL), "NaN, inf");
  const auto x_tick = [&](double x, std::string_view text) {
    out += line(x, bottom_, x, bottom_ + 4, "axis");
    if (x_.slanted) {
      out += label(x + 3, bottom_ + 14, "tick end", text, turned(-40, x + 3, bottom_ + 14));
    } else {
      out += label(x, bottom_ + 16, "tick middle", text);
    }
  };
  for (const Tick& tick : x_.ticks) x_tick(x_pixel(tick.value), tick.label);
  if (x_.zero_lane) x_tick(x_pixel(0), x_.zero_label);
  if (x_.not_finite_lane) x_tick(x_pixel(HUGE_VAL), "inf");
  out += line(kLeft, bottom_, right, bottom_, "axis");
  out += label((kLeft + right) / 2, height_ - 8, "axis-label middle", x_.label);
  const double middle = (kTop + bottom_) / 2;
  out += label(12, middle, "axis-label middle", y_.label, turned(-90, 12, middle));
  return out + "\n";
}

std::string Plot::svg() const {
  std::string out = fmt::format(
      R"(<svg class="plot" viewBox="0 0 {0:.0f} {1:.0f}" role="img" aria-labelledby="{2}t {2}d">)",
      width_, height_, text_.id);
  out += fmt::format("<title id=\"{0}t\">{1}</title><desc id=\"{0}d\">{2}</desc>\n", text_.id,
                     html_text(text_.title), html_text(text_.description));
  return out + grid() + body_ + legend_ + "</svg>\n";
}

}  // namespace jemm

// Plots as inline SVG: axes, marks, segments, bars. Colours come from the page's style sheet.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace jemm {

struct Tick {
  double value = 0;
  std::string label;
};

/// Values to a stretch of pixels. On a log axis zero, and what is too small for it, has a lane of
/// its own below; what is not finite has one beyond the largest value on either kind.
struct Axis {
  std::string label;
  bool log = false;
  double low = 0, high = 1;  ///< low < high; both > 0 on a log axis
  std::vector<Tick> ticks;
  bool zero_lane = false, not_finite_lane = false;
  std::string zero_label = "0";  ///< of the lane: "0", "<1e-08"
  bool slanted = false;          ///< labels of categories

  /// From 0 at `low` to 1 at `high`; lanes lie at `lane` outside.
  double position(double value, double lane) const;
};

/// Axes that hold `values`, whatever they are: none, all zero, all equal, not finite. A log axis is
/// at most six decades long.
Axis log_axis(std::string label, const std::vector<double>& values);
Axis linear_axis(std::string label, const std::vector<double>& values);  ///< from 0
/// Categories at 0.5, 1.5, ...; empty names have no tick.
Axis category_axis(std::string label, const std::vector<std::string>& names);

enum class Mark { kDot, kRing, kCross, kDash };

struct PlotText {
  std::string id;  ///< unique on the page, of letters and digits
  std::string title;
  std::string description;
};

class Plot {
 public:
  Plot(PlotText text, Axis x, Axis y, double width, double height);

  /// `style`: a class of the style sheet; `title`: shown when pointed at.
  void mark(double x, double y, Mark mark, std::string_view style, std::string_view title);
  void segment(double x0, double y0, double x1, double y1, std::string_view style);
  /// From the bottom up to y, x0 to x1.
  void bar(double x0, double x1, double y, std::string_view style, std::string_view title);
  void legend(Mark mark, std::string_view style, std::string_view label);
  void line_legend(std::string_view style, std::string_view label);

  std::string svg() const;

 private:
  double x_pixel(double x) const;
  double y_pixel(double y) const;
  std::string grid() const;
  void legend_label(std::string_view label);

  PlotText text_;
  Axis x_, y_;
  double width_, height_, bottom_;
  double legend_x_;
  std::string body_, legend_;
};

}  // namespace jemm

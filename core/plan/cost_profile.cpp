// Interpolation.
#include "plan/cost_profile.h"

#include <algorithm>
#include <utility>

namespace jemm {

double CostProfile::rows_ms(std::int64_t n_rows) const {
  if (n_rows <= points.front().n_rows && points.size() > 1) return points.front().ms;
  const auto above = std::find_if(points.begin(), points.end(),
                                  [&](const Point& point) { return point.n_rows >= n_rows; });
  const Point to = above == points.end() ? points.back() : *above;
  const Point from = points.size() == 1      ? Point{0, 0}
                     : above == points.end() ? points[points.size() - 2]
                                             : *(above - 1);
  const double slope = (to.ms - from.ms) / static_cast<double>(to.n_rows - from.n_rows);
  return from.ms + slope * static_cast<double>(n_rows - from.n_rows);
}

CostProfile linear_profile(double ms_per_row, std::string origin) {
  constexpr double kSegmentRows = 16;
  return {.origin = std::move(origin),
          .points = {{64, 64 * ms_per_row}, {128, 128 * ms_per_row}},
          .segment_ms = kSegmentRows * ms_per_row,
          .level_ms = 0};
}

}  // namespace jemm

// What passes cost on some engine, as far as the planner needs to know.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace jemm {

/// Milliseconds of a pass: of its rows, and of how they are cut into segments.
struct CostProfile {
  struct Point {
    std::int64_t n_rows;
    double ms;
  };
  std::string origin;         ///< where the numbers come from, for reports
  std::vector<Point> points;  ///< at least one; rows rise strictly, milliseconds do not fall
  double segment_ms = 0;      ///< each segment of a pass
  double level_ms = 0;        ///< each level of segments below the roots

  /// Straight lines between the points, level before the first, behind the last on through it from
  /// the one before (from 0 when there is one alone).
  double rows_ms(std::int64_t n_rows) const;
  double pass_ms(std::int64_t n_rows, std::int64_t n_segments, std::int64_t n_levels) const {
    return rows_ms(n_rows) + static_cast<double>(n_segments) * segment_ms +
           static_cast<double>(n_levels - 1) * level_ms;
  }
};

/// Of the CPU engine: linear in the rows, but 64 at least (the height of its tiles). A segment
/// costs as much as kSegmentRows.
CostProfile linear_profile(double ms_per_row, std::string origin);

}  // namespace jemm

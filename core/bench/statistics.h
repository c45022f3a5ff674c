// Order statistics of timings, and how sure a ratio of two medians is.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace jemm {

/// The quantile q (0 to 1) of ascending values [n], n >= 1: linear between the two nearest ranks,
/// where rank q (n - 1) counts from 0 (type 7 of Hyndman and Fan, NumPy's default).
double quantile(std::span<const double> sorted, double q);

struct Summary {
  std::size_t n = 0;
  double p10 = 0, median = 0, p90 = 0;
  std::optional<double> p99;  ///< from 100 values on: below, it would be the largest one
};
/// values: [n], n >= 1, in any order.
Summary summarise(std::span<const double> values);

/// Resamples of fewer values than this vary too little: their interval would claim a certainty that
/// is not there.
inline constexpr std::size_t kFewestForInterval = 5;

/// median(a) / median(b) with its 95 % interval: the 2.5 % and 97.5 % quantiles over 2,000 pairs of
/// resamples (percentile bootstrap); none below kFewestForInterval values on a side. The resamples
/// are drawn from a fixed seed: equal values give equal intervals. a, b: at least one positive
/// value each.
struct RatioInterval {
  double low = 0, high = 0;

  bool holds(double value) const { return low <= value && value <= high; }
};
struct Ratio {
  double value = 0;
  std::optional<RatioInterval> interval;
};
Ratio ratio_of_medians(std::span<const double> a, std::span<const double> b);

}  // namespace jemm

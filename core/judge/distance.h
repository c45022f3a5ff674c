// How far two tensors, or two distributions, lie apart.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace jemm {

/// The middle value, or the mean of the two in the middle; 0 of nothing. Reorders the values.
double median_of(std::vector<double>& values);

struct TensorDistance {
  double rms_ratio = 0;  ///< RMS(x - reference) / RMS(reference); 0 / 0 counts as 0
  double max_abs = 0;    ///< largest |x - reference|
};

/// Sums wider than double. Both spans have the same length.
TensorDistance tensor_distance(std::span<const float> x, std::span<const float> reference);
TensorDistance tensor_distance(std::span<const double> x, std::span<const double> reference);

struct DistributionDistance {
  double drift = 0;            ///< largest |p - p_reference|
  double kl = 0;               ///< sum p_ref ln(p_ref / p), nats; infinite where p alone is 0
  double total_variation = 0;  ///< sum |p - p_ref| / 2
};
DistributionDistance distribution_distance(std::span<const double> p,
                                           std::span<const double> reference);

/// The first of the largest values, and its lead over the second largest (over 0 when alone).
struct Winner {
  std::size_t index = 0;
  double margin = 0;
};
Winner winner_of(std::span<const double> probabilities);

/// The Wilson score interval of a share, 95%: z = 1.96.
struct Interval {
  double low = 0, high = 1;
};
Interval wilson_interval(std::uint64_t n_hits, std::uint64_t n);

}  // namespace jemm

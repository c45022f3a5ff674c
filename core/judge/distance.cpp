// Distances, in double or wider.
#include "judge/distance.h"

#include <algorithm>
#include <cmath>

namespace jemm {
namespace {

template <typename Value>
TensorDistance distance_of(std::span<const Value> x, std::span<const Value> reference) {
  TensorDistance distance;
  long double difference = 0;  // squares of any double fit
  long double norm = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto r = static_cast<long double>(reference[i]);
    const long double d = static_cast<long double>(x[i]) - r;
    difference += d * d;
    norm += r * r;
    distance.max_abs = std::max(distance.max_abs, static_cast<double>(std::abs(d)));
  }
  if (difference > 0) distance.rms_ratio = static_cast<double>(std::sqrt(difference / norm));
  return distance;
}

}  // namespace

double median_of(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

TensorDistance tensor_distance(std::span<const float> x, std::span<const float> reference) {
  return distance_of(x, reference);
}

TensorDistance tensor_distance(std::span<const double> x, std::span<const double> reference) {
  return distance_of(x, reference);
}

DistributionDistance distribution_distance(std::span<const double> p,
                                           std::span<const double> reference) {
  DistributionDistance distance;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double gap = std::abs(p[i] - reference[i]);
    distance.drift = std::max(distance.drift, gap);
    distance.total_variation += gap / 2;
    if (reference[i] > 0) distance.kl += reference[i] * std::log(reference[i] / p[i]);
  }
  distance.kl = std::max(distance.kl, 0.0);  // rounding may leave -1e-17
  return distance;
}

Winner winner_of(std::span<const double> probabilities) {
  Winner winner;
  for (std::size_t i = 1; i < probabilities.size(); ++i) {
    if (probabilities[i] > probabilities[winner.index]) winner.index = i;
  }
  double second = 0;
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    if (i != winner.index) second = std::max(second, probabilities[i]);
  }
  winner.margin = probabilities[winner.index] - second;
  return winner;
}

Interval wilson_interval(std::uint64_t n_hits, std::uint64_t n) {
  if (n == 0) return {};
  constexpr double kZ = 1.96;
  const auto count = static_cast<double>(n);
  const double share = static_cast<double>(n_hits) / count;
  const double scale = 1 + kZ * kZ / count;
  const double centre = (share + kZ * kZ / (2 * count)) / scale;
  const double half =
      kZ / scale * std::sqrt(share * (1 - share) / count + kZ * kZ / (4 * count * count));
  return {std::max(0.0, centre - half), std::min(1.0, centre + half)};
}

}  // namespace jemm

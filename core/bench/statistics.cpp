#include "bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

namespace jemm {
namespace {

constexpr std::size_t kResamples = 2000;
constexpr std::size_t kEnoughForP99 = 100;

std::vector<double> sorted_copy(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

/// The median of n draws with replacement from ascending values. The draws are counted, not
/// sorted, so that a resample takes time n.
double resampled_median(std::span<const double> sorted, std::mt19937_64& random,
                        std::vector<std::uint32_t>& counts) {
  const std::size_t n = sorted.size();
  counts.assign(n, 0);
  for (std::size_t i = 0; i < n; ++i) ++counts[random() % n];
  const std::size_t low_rank = (n - 1) / 2, high_rank = n / 2;
  std::size_t n_before = 0, i = 0;
  while (n_before + counts[i] <= low_rank) n_before += counts[i++];
  const double low = sorted[i];
  while (n_before + counts[i] <= high_rank) n_before += counts[i++];
  return (low + sorted[i]) / 2;
}

}  // namespace

double quantile(std::span<const double> sorted, double q) {
  const double rank = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(rank));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], rank - static_cast<double>(below));
}

Summary summarise(std::span<const double> values) {
  const std::vector<double> sorted = sorted_copy(values);
  Summary summary{.n = sorted.size(),
                  .p10 = quantile(sorted, 0.1),
                  .median = quantile(sorted, 0.5),
                  .p90 = quantile(sorted, 0.9),
                  .p99 = {}};
  if (sorted.size() >= kEnoughForP99) summary.p99 = quantile(sorted, 0.99);
  return summary;
}

Ratio ratio_of_medians(std::span<const double> a, std::span<const double> b) {
  const std::vector<double> sorted_a = sorted_copy(a), sorted_b = sorted_copy(b);
  Ratio ratio{.value = quantile(sorted_a, 0.5) / quantile(sorted_b, 0.5), .interval = {}};
  if (std::min(a.size(), b.size()) < kFewestForInterval) return ratio;
  std::mt19937_64 random(1);  // its values are fixed by the standard
  std::vector<std::uint32_t> counts;
  std::vector<double> ratios(kResamples);
  for (double& resampled : ratios) {
    const double resampled_a = resampled_median(sorted_a, random, counts);
    resampled = resampled_a / resampled_median(sorted_b, random, counts);
  }
  std::sort(ratios.begin(), ratios.end());
  ratio.interval = RatioInterval{.low = quantile(ratios, 0.025), .high = quantile(ratios, 0.975)};
  return ratio;
}

}  // namespace jemm

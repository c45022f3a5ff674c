// Quantiles and the bootstrap against answers worked out by hand.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "bench/statistics.h"

namespace jemm {
namespace {

std::vector<double> count_up(std::size_t n, double first = 1) {
  std::vector<double> values(n);
  std::iota(values.begin(), values.end(), first);
  return values;
}

}  // namespace

TEST_CASE("quantiles are linear between the nearest ranks") {
  const std::vector<double> four = {1, 2, 3, 4};
  CHECK(quantile(four, 0) == 1);
  CHECK(quantile(four, 0.25) == doctest::Approx(1.75));
  CHECK(quantile(four, 0.5) == doctest::Approx(2.5));
  CHECK(quantile(four, 1) == 4);
  CHECK(quantile(count_up(11), 0.1) == doctest::Approx(2));
  CHECK(quantile(std::vector<double>{7}, 0.9) == 7);
}

TEST_CASE("a summary does not ask for order, and gives p99 from 100 values on") {
  const Summary few = summarise(std::vector<double>{3, 1, 2});
  CHECK(few.n == 3);
  CHECK(few.median == 2);
  CHECK(few.p10 == doctest::Approx(1.2));
  CHECK(few.p90 == doctest::Approx(2.8));
  CHECK_FALSE(few.p99.has_value());
  CHECK_FALSE(summarise(count_up(99)).p99.has_value());
  REQUIRE(summarise(count_up(101)).p99.has_value());
  CHECK(*summarise(count_up(101)).p99 == doctest::Approx(100));
}

TEST_CASE("the ratio of constants is certain") {
  const Ratio ratio = ratio_of_medians(std::vector<double>(5, 6.0), std::vector<double>(9, 2.0));
  CHECK(ratio.value == 3);
  CHECK(ratio.low == 3);
  CHECK(ratio.high == 3);
}

TEST_CASE("two values: their median is the low, the middle or the high one") {
  // With chances 1/4, 1/2, 1/4, so the 2.5 % and 97.5 % quantiles are the ends.
  const Ratio ratio = ratio_of_medians(std::vector<double>{1, 3}, std::vector<double>{1});
  CHECK(ratio.value == 2);
  CHECK(ratio.low == 1);
  CHECK(ratio.high == 3);
}

TEST_CASE("the interval of a median is that of its rank") {
  // Of 1..101, a resample's median has the rank 51 +- 1.96 sqrt(101) / 2, nearly.
  const Ratio ratio = ratio_of_medians(count_up(101), std::vector<double>{1});
  CHECK(ratio.value == 51);
  CHECK(std::abs(ratio.low - 41.2) < 1.5);
  CHECK(std::abs(ratio.high - 60.8) < 1.5);
}

TEST_CASE("equal values give equal intervals, in whatever order") {
  const std::vector<double> a = {5, 1, 4, 2, 8}, b = {3, 9, 2, 7};
  const Ratio first = ratio_of_medians(a, b);
  const Ratio again = ratio_of_medians(std::vector<double>{8, 5, 4, 2, 1}, b);
  CHECK(first.low == again.low);
  CHECK(first.high == again.high);
  CHECK(first.low < first.value);
  CHECK(first.value < first.high);
}

}  // namespace jemm

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
  REQUIRE(ratio.interval);
  CHECK(ratio.interval->low == 3);
  CHECK(ratio.interval->high == 3);
}

TEST_CASE("too few values on either side have no interval") {
  const std::vector<double> enough = count_up(5);
  for (std::size_t n = 1; n <= 4; ++n) {
    CAPTURE(n);
    CHECK_FALSE(ratio_of_medians(count_up(n), enough).interval.has_value());
    CHECK_FALSE(ratio_of_medians(enough, count_up(n)).interval.has_value());
    CHECK(ratio_of_medians(enough, count_up(n)).value > 0);
  }
  CHECK(ratio_of_medians(enough, enough).interval.has_value());
}

TEST_CASE("the interval of a median is that of its rank") {
  // Of 1..101, a resample's median has the rank 51 +- 1.96 sqrt(101) / 2, nearly.
  const Ratio ratio = ratio_of_medians(count_up(101), std::vector<double>(5, 1.0));
  CHECK(ratio.value == 51);
  REQUIRE(ratio.interval);
  CHECK(std::abs(ratio.interval->low - 41.2) < 1.5);
  CHECK(std::abs(ratio.interval->high - 60.8) < 1.5);
}

TEST_CASE("equal values give equal intervals, in whatever order") {
  const std::vector<double> a = {5, 1, 4, 2, 8}, b = {3, 9, 2, 7, 4};
  const Ratio first = ratio_of_medians(a, b);
  const Ratio again = ratio_of_medians(std::vector<double>{8, 5, 4, 2, 1}, b);
  REQUIRE(first.interval);
  REQUIRE(again.interval);
  CHECK(first.interval->low == again.interval->low);
  CHECK(first.interval->high == again.interval->high);
  CHECK(first.interval->low < first.value);
  CHECK(first.value < first.interval->high);
}

}  // namespace jemm

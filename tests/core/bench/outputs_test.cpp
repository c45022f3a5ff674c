// Two runs' answers held against each other.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "bench/outputs.h"

namespace jemm {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Outputs two(double p, double q) {
  return {{"request 1, question a", "", {p, 1 - p}}, {"request 1, question b", "", {q, 1 - q}}};
}

double drift(const Outputs& a, const Outputs& b) {
  return outputs_drift(a, b).largest;
}

}  // namespace

TEST_CASE("the largest difference of a probability, and where it is") {
  CHECK(drift(two(0.5, 0.2), two(0.5, 0.2)) == 0);
  CHECK(outputs_drift(two(0.5, 0.2), two(0.5, 0.2)).where.empty());
  const Drift found = outputs_drift(two(0.5, 0.25), two(0.51, 0.375));
  CHECK(found.largest == doctest::Approx(0.125));
  CHECK(found.where == "request 1, question b: candidate 1 went from 0.25 to 0.375");
}

TEST_CASE("the first answers are kept, so many probabilities and refusals at most") {
  CHECK(first_answers(two(0.5, 0.2)).size() == 2);
  const Outputs refused = first_answers({{"request 1", "ValueError: no", {}}});
  CHECK(refused[0].refusal == kRefused);
  CHECK(first_answers(Outputs(4000, {"q", "", {0.2, 0.3, 0.5}})).size() == 3333);
  CHECK(first_answers(Outputs(20'000, {"q", "no", {}})).size() == kMostAnswers);
}

TEST_CASE("what cannot be compared is infinitely far away") {
  const Outputs good = two(0.5, 0.2);
  CHECK(std::isinf(drift(good, two(0.5, kNaN))));
  CHECK(std::isinf(drift(two(kNaN, 0.2), good)));
  CHECK(std::isinf(drift(two(kNaN, 0.2), two(kNaN, 0.2))));
  CHECK(std::isinf(drift(good, {good[0]})));
  CHECK(std::isinf(drift(good, {})));
  CHECK(std::isinf(drift(good, {good[1], good[0]})));
  Outputs changed = good;
  changed[1].probabilities.push_back(0);
  CHECK(std::isinf(drift(good, changed)));
  changed = good;
  changed[0] = {good[0].name, "ValueError: no", {}};
  CHECK(outputs_drift(good, changed).where ==
        "request 1, question a: an answer became \"ValueError: no\"");
  CHECK(drift(changed, changed) == 0);
}

}  // namespace jemm

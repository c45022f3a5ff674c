// The order of runs, when they end and what their outputs decide, with a clock of the test's own.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "bench/report.h"

namespace jemm {
namespace {

/// Subjects that move a clock by what they are told to take.
struct Bench {
  double now_s = 0;
  std::string order;
  std::string kinds;
  int stop_after = -1;

  struct Fake : Subject {
    Bench& bench;
    char name;
    double ms;
    double probability = 0.7;
    int faulty_run = -1;  ///< which of its runs answers otherwise
    int n_runs = 0;

    Fake(Bench& owner, char letter, double takes_ms) : bench(owner), name(letter), ms(takes_ms) {}

    RunSample run(Outputs& outputs) override {
      bench.order += name;
      bench.now_s += ms / 1000;
      const double p = n_runs++ == faulty_run ? 0.1 : probability;
      outputs = {{"request 1, question q", "", {p, 1 - p}}};
      RunSample sample{.total_ms = ms, .engine_ms = ms / 2, .stages = {}, .work = {}, .gpu = {}};
      sample.stages[Stage::kText] = ms * 0.99;
      return sample;
    }
  };

  std::vector<Series> measure(const std::vector<Fake*>& fakes, const MeasureLimits& limits) {
    const std::vector<Subject*> subjects(fakes.begin(), fakes.end());
    return jemm::measure(
        subjects, limits,
        {.now_s = [this] { return now_s; },
         .stop = [this] { return static_cast<int>(order.size()) == stop_after; },
         .after_run = [this](std::size_t, RunKind kind,
                             RunSample&) { kinds += "fwm"[static_cast<int>(kind)]; }});
  }
};

Result result_of(std::vector<Series> series) {
  const std::size_t n = series.size();
  return {.workload = {},
          .modes = std::move(series),
          .operations = std::vector<double>(n),
          .floor_ms = std::vector<std::optional<double>>(n)};
}

}  // namespace

TEST_CASE("rounds go there and back, behind first runs and warm-up") {
  Bench bench;
  Bench::Fake a(bench, 'A', 10), b(bench, 'B', 20);
  const auto series = bench.measure({&a, &b}, {.seconds = 0, .n_runs = 4, .n_warm_up = 2});
  CHECK(bench.order ==
        "AB"
        "ABBA"
        "ABBAABBA");
  CHECK(bench.kinds ==
        "ff"
        "wwww"
        "mmmmmmmm");
  CHECK(series[0].samples.size() == 4);
  CHECK(series[1].samples.size() == 4);
  CHECK(series[1].first.total_ms == 20);
  CHECK(series[0].drift.largest == 0);
}

TEST_CASE("three modes are turned round as well") {
  Bench bench;
  Bench::Fake a(bench, 'A', 1), b(bench, 'B', 1), c(bench, 'C', 1);
  bench.measure({&a, &b, &c}, {.seconds = 0, .n_runs = 2, .n_warm_up = 0});
  CHECK(bench.order ==
        "ABC"
        "ABCCBA");
}

TEST_CASE("time ends it, in whole pairs of rounds and not too soon") {
  Bench bench;
  Bench::Fake a(bench, 'A', 100), b(bench, 'B', 100);
  // Rounds take 0.2 s: at 0.9 s there are 5, so 6.
  CHECK(bench.measure({&a, &b}, {.seconds = 0.9, .n_runs = 0, .n_warm_up = 1})[0].samples.size() ==
        6);
  Bench slow;
  Bench::Fake alone(slow, 'A', 5000);
  CHECK(slow.measure({&alone}, {.seconds = 1, .n_runs = 0, .n_warm_up = 0})[0].samples.size() == 3);
}

TEST_CASE("time that is long ends at the most runs") {
  Bench bench;
  Bench::Fake a(bench, 'A', 0.001), b(bench, 'B', 0.001);
  const auto series = bench.measure({&a, &b}, {.seconds = 1e6, .n_runs = 0, .n_warm_up = 0});
  CHECK(series[0].samples.size() == kMostRuns);
  CHECK(series[1].samples.size() == kMostRuns);
}

TEST_CASE("each mode's own first answers are kept") {
  Bench bench;
  Bench::Fake a(bench, 'A', 1), b(bench, 'B', 1);
  b.faulty_run = 0;
  const auto series = bench.measure({&a, &b}, {.seconds = 0, .n_runs = 2, .n_warm_up = 0});
  CHECK(series[0].answers[0].probabilities[0] == 0.7);
  CHECK(series[1].answers[0].probabilities[0] == 0.1);
}

TEST_CASE("told to stop, it keeps what is finished") {
  Bench bench;
  bench.stop_after = 5;
  Bench::Fake a(bench, 'A', 1), b(bench, 'B', 1);
  const auto series = bench.measure({&a, &b}, {.seconds = 0, .n_runs = 9, .n_warm_up = 0});
  CHECK(bench.order == "ABABB");
  CHECK(series[0].samples.size() == 1);
  CHECK(series[1].samples.size() == 2);
}

TEST_CASE("a fault in one run's output takes the speed-up away") {
  Bench bench;
  Bench::Fake a(bench, 'A', 30), b(bench, 'B', 10);
  const MeasureLimits limits{.seconds = 0, .n_runs = 4, .n_warm_up = 1};
  const Comparison sound = compare_modes(result_of(bench.measure({&a, &b}, limits)), 1, 0.01);
  CHECK(sound.is_sound);
  CHECK(sound.total.value == doctest::Approx(3));

  Bench::Fake faulty(bench, 'B', 10);
  faulty.faulty_run = 3;
  const Comparison unsound =
      compare_modes(result_of(bench.measure({&a, &faulty}, limits)), 1, 0.01);
  CHECK_FALSE(unsound.is_sound);
  CHECK(unsound.drift.largest == doctest::Approx(0.6));
  CHECK(unsound.drift.where == "request 1, question q: candidate 1 went from 0.7 to 0.1");

  // The first mode may be the one that does not repeat itself.
  Bench::Fake restless(bench, 'A', 10);
  restless.faulty_run = 5;
  CHECK_FALSE(compare_modes(result_of(bench.measure({&restless, &b}, limits)), 1, 0.01).is_sound);
}

TEST_CASE("stages and the rest add up to the total") {
  Bench bench;
  Bench::Fake a(bench, 'A', 40);
  const auto series = bench.measure({&a}, {.seconds = 0, .n_runs = 3, .n_warm_up = 0});
  const StageMeans means = stage_means(series[0]);
  CHECK(means.stages.total_ms == doctest::Approx(40));
  CHECK(means.stages[Stage::kText] == doctest::Approx(39.6));
  CHECK(means.other_ms == doctest::Approx(0.4));
  CHECK(idle_share(series[0]) == doctest::Approx(0.5));

  RunSample at_once = series[0].samples[0];
  at_once.stages[Stage::kParse] += 5;
  at_once.overlap_ms = 5;
  CHECK(at_once.other_ms() == doctest::Approx(0.4));
}

}  // namespace jemm

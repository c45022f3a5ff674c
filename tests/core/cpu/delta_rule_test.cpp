// The chunked delta rule against the recurrence it stands for, token by token in double.
#include "cpu/delta_rule.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace jemm::cpu {
namespace {

// Random rows as a layer makes them: unit keys, scaled unit queries, decays from none to strong.
struct Rows {
  std::int64_t n, key_dim, value_dim;
  std::vector<float> q, k, v, log_decay, beta;

  Rows(std::int64_t n_rows, std::int64_t dk, std::int64_t dv, std::uint32_t seed, double strongest)
      : n(n_rows), key_dim(dk), value_dim(dv) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform(0, 1);
    const auto unit = [&](std::vector<float>& to, double length) {
      std::vector<double> x(static_cast<std::size_t>(dk));
      double sum = 0;
      for (double& value : x) {
        value = normal(random);
        sum += value * value;
      }
      for (const double value : x)
        to.push_back(static_cast<float>(value * length / std::sqrt(sum)));
    };
    for (std::int64_t t = 0; t < n; ++t) {
      unit(q, 1 / std::sqrt(static_cast<double>(dk)));
      unit(k, 1);
      for (std::int64_t d = 0; d < dv; ++d) v.push_back(static_cast<float>(normal(random)));
      log_decay.push_back(static_cast<float>(-strongest * std::pow(uniform(random), 4)));
      beta.push_back(static_cast<float>(uniform(random)));
    }
  }
};

struct Result {
  std::vector<double> out, state;
};

Result recurrence(const Rows& rows) {
  const std::int64_t dk = rows.key_dim, dv = rows.value_dim;
  Result r{{}, std::vector<double>(static_cast<std::size_t>(dk * dv))};
  const auto at = [](const std::vector<float>& x, std::int64_t i) {
    return static_cast<double>(x[static_cast<std::size_t>(i)]);
  };
  const auto s = [&](std::int64_t i, std::int64_t j) -> double& {
    return r.state[static_cast<std::size_t>(i * dv + j)];
  };
  for (std::int64_t t = 0; t < rows.n; ++t) {
    for (double& x : r.state) x *= std::exp(at(rows.log_decay, t));
    for (std::int64_t j = 0; j < dv; ++j) {
      double predicted = 0;
      for (std::int64_t i = 0; i < dk; ++i) predicted += s(i, j) * at(rows.k, t * dk + i);
      const double update = at(rows.beta, t) * (at(rows.v, t * dv + j) - predicted);
      for (std::int64_t i = 0; i < dk; ++i) s(i, j) += at(rows.k, t * dk + i) * update;
    }
    for (std::int64_t j = 0; j < dv; ++j) {
      double sum = 0;
      for (std::int64_t i = 0; i < dk; ++i) sum += s(i, j) * at(rows.q, t * dk + i);
      r.out.push_back(sum);
    }
  }
  return r;
}

struct FloatResult {
  std::vector<float> out, state;
};

// The rows in two runs, cut at `cut`.
FloatResult chunked(const DeltaRule& rule, const Rows& rows, std::int64_t cut) {
  const std::int64_t dk = rows.key_dim, dv = rows.value_dim;
  const std::int64_t stride = 2 * dk + dv;
  std::vector<float> qkv(static_cast<std::size_t>((rows.n + 1) * stride));
  for (std::int64_t t = 0; t < rows.n; ++t) {
    std::copy_n(rows.q.data() + t * dk, dk, qkv.data() + t * stride);
    std::copy_n(rows.k.data() + t * dk, dk, qkv.data() + t * stride + dk);
    std::copy_n(rows.v.data() + t * dv, dv, qkv.data() + t * stride + 2 * dk);
  }
  constexpr float kSentinel = 12345.0f;
  FloatResult r{std::vector<float>(static_cast<std::size_t>(rows.n * dv + 1), kSentinel),
                std::vector<float>(static_cast<std::size_t>(dk * dv + 1), 0.0f)};
  r.state.back() = kSentinel;
  std::vector<float> scratch(static_cast<std::size_t>(rule.scratch_floats()), NAN);
  for (const auto& [begin, end] : {std::pair{std::int64_t{0}, cut}, std::pair{cut, rows.n}}) {
    rule.run(0,
             {.q = qkv.data() + begin * stride,
              .k = qkv.data() + begin * stride + dk,
              .v = qkv.data() + begin * stride + 2 * dk,
              .qkv_stride = stride,
              .log_decay = rows.log_decay.data() + begin,
              .beta = rows.beta.data() + begin,
              .gate_stride = 1,
              .out = r.out.data() + begin * dv,
              .out_stride = dv,
              .n_rows = end - begin,
              .n_before = begin},
             r.state.data(), scratch.data());
  }
  CHECK(r.out.back() == kSentinel);
  CHECK(r.state.back() == kSentinel);
  r.out.pop_back();
  r.state.pop_back();
  return r;
}

double rms_ratio(const std::vector<float>& x, const std::vector<double>& reference) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const double d = static_cast<double>(x[i]) - reference[i];
    difference += d * d;
    norm += reference[i] * reference[i];
  }
  return std::sqrt(difference / norm);
}

void check_lengths(std::int64_t dk, std::int64_t dv, double strongest) {
  Products products(1);
  const DeltaRule rule(products, dk, dv);
  double worst = 0;
  for (const std::int64_t n : {1, 2, 3, 5, 31, 32, 33, 63, 64, 65, 69, 127, 128, 129, 193}) {
    const Rows rows(n, dk, dv, static_cast<std::uint32_t>(n), strongest);
    const Result expected = recurrence(rows);
    const FloatResult whole = chunked(rule, rows, n);
    for (std::int64_t cut = 0; cut <= n; ++cut) {
      const FloatResult got = chunked(rule, rows, cut);
      const double error =
          std::max(rms_ratio(got.out, expected.out), rms_ratio(got.state, expected.state));
      CHECK(error < 2e-6);  // not-a-number fails too
      worst = std::max(worst, error);
      if (cut % 64 == 0) CHECK((got.out == whole.out && got.state == whole.state));
    }
  }
  MESSAGE("Dk " << dk << " Dv " << dv << ": worst RMS ratio " << worst);
}

TEST_CASE("outputs and final state equal the recurrence for every length and split") {
  check_lengths(8, 20, 1);
  check_lengths(16, 16, 20);
}

TEST_CASE("a head of real size equals the recurrence") {
  Products products(1);
  const DeltaRule rule(products, 128, 128);
  const Rows rows(150, 128, 128, 1, 5);
  const Result expected = recurrence(rows);
  const FloatResult got = chunked(rule, rows, 100);
  CHECK(rms_ratio(got.out, expected.out) < 2e-6);
  CHECK(rms_ratio(got.state, expected.state) < 2e-6);
}

TEST_CASE("one row by hand: the state becomes beta v k, the output q.k times it") {
  Products products(1);
  const DeltaRule rule(products, 1, 1);
  const float q = 0.5f, k = 1, v = 3, log_decay = std::log(0.25f), beta = 0.5f;
  float state = 8, out = 0;
  std::vector<float> scratch(static_cast<std::size_t>(rule.scratch_floats()));
  rule.run(0,
           {.q = &q,
            .k = &k,
            .v = &v,
            .qkv_stride = 3,
            .log_decay = &log_decay,
            .beta = &beta,
            .gate_stride = 1,
            .out = &out,
            .out_stride = 1,
            .n_rows = 1,
            .n_before = 0},
           &state, scratch.data());
  CHECK(state == doctest::Approx(2.5));  // 8 / 4 = 2, then 2 + 0.5 (3 - 2)
  CHECK(out == doctest::Approx(1.25));
}

}  // namespace
}  // namespace jemm::cpu

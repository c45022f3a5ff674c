#include "bench/outputs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace jemm {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Drift output_drift(const Output& reference, const Output& output) {
  if (reference.name != output.name) {
    return {kInfinity, fmt::format("{} became {}", reference.name, output.name)};
  }
  if (reference.refusal != output.refusal) {
    const auto said = [](const std::string& text) {
      return text.empty() ? "an answer" : "\"" + text + "\"";
    };
    return {kInfinity, fmt::format("{}: {} became {}", output.name, said(reference.refusal),
                                   said(output.refusal))};
  }
  if (reference.probabilities.size() != output.probabilities.size()) {
    return {kInfinity, fmt::format("{}: {} candidates became {}", output.name,
                                   reference.probabilities.size(), output.probabilities.size())};
  }
  Drift drift;
  for (std::size_t i = 0; i < output.probabilities.size(); ++i) {
    const double before = reference.probabilities[i], after = output.probabilities[i];
    double difference = std::abs(after - before);
    if (!std::isfinite(difference)) difference = kInfinity;
    if (difference > drift.largest) {
      drift = {difference, fmt::format("{}: candidate {} went from {:.4g} to {:.4g}", output.name,
                                       i + 1, before, after)};
    }
  }
  return drift;
}

}  // namespace

Outputs first_answers(const Outputs& outputs) {
  Outputs first;
  std::size_t n = 0;
  for (const Output& output : outputs) {
    n += std::max<std::size_t>(output.probabilities.size(), 1);
    if (n > kMostAnswers) break;
    first.push_back(output);
    if (!output.refusal.empty()) first.back().refusal = kRefused;
  }
  return first;
}

Drift outputs_drift(const Outputs& reference, const Outputs& outputs) {
  if (reference.size() != outputs.size()) {
    return {kInfinity, fmt::format("{} outputs became {}", reference.size(), outputs.size())};
  }
  Drift largest;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Drift drift = output_drift(reference[i], outputs[i]);
    if (drift.largest > largest.largest) largest = std::move(drift);
  }
  return largest;
}

}  // namespace jemm

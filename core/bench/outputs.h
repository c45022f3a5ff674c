// What a run answered, and whether another run answered the same: no time is worth more than that.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace jemm {

/// A question's probabilities [candidates], or a request's refusal.
struct Output {
  std::string name;     ///< "request 3, question down"
  std::string refusal;  ///< empty: answered
  std::vector<double> probabilities;
};
using Outputs = std::vector<Output>;

/// What a report keeps of outputs: the first of them, kMostAnswers probabilities and refusals at
/// most. A refusal becomes kRefused.
inline constexpr std::size_t kMostAnswers = 10'000;
inline constexpr std::string_view kRefused = "a refusal";
Outputs first_answers(const Outputs& outputs);

/// The largest difference of a probability. Infinite where outputs cannot be compared: one refused
/// and the other not, other questions or candidates, a value that is no number.
struct Drift {
  double largest = 0;
  std::string where;  ///< the output that has it, and how it differs; empty for none
};
Drift outputs_drift(const Outputs& reference, const Outputs& outputs);

}  // namespace jemm

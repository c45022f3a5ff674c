// What a run answered, and whether another run answered the same: no time is worth more than that.
#pragma once

#include <string>
#include <vector>

namespace jemm {

/// A question's probabilities [candidates], or a request's refusal.
struct Output {
  std::string name;     ///< "request 3, question down"
  std::string refusal;  ///< empty: answered
  std::vector<double> probabilities;
};
using Outputs = std::vector<Output>;

/// The largest difference of a probability. Infinite where outputs cannot be compared: one refused
/// and the other not, other questions or candidates, a value that is no number.
struct Drift {
  double largest = 0;
  std::string where;  ///< the output that has it, and how it differs; empty for none
};
Drift outputs_drift(const Outputs& reference, const Outputs& outputs);

}  // namespace jemm

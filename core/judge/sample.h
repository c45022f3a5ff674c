// A regular sample of a stream of values, for medians in bounded memory.
#pragma once

#include <cstdint>
#include <vector>

#include "judge/distance.h"

namespace jemm {

/// Keeps every value of up to 65,536, then every second one, every fourth, and so on.
class Sample {
 public:
  void add(double value) {
    if (n_seen_++ % step_ != 0) return;
    if (values_.size() == kMaxValues) {
      for (std::size_t i = 0; i < kMaxValues / 2; ++i) values_[i] = values_[2 * i];
      values_.resize(kMaxValues / 2);
      step_ *= 2;
      if ((n_seen_ - 1) % step_ != 0) return;
    }
    values_.push_back(value);
  }
  bool empty() const { return values_.empty(); }
  double median() const {
    std::vector<double> copy = values_;
    return median_of(copy);
  }

 private:
  static constexpr std::size_t kMaxValues = std::size_t{1} << 16;

  std::vector<double> values_;
  std::uint64_t n_seen_ = 0;
  std::uint64_t step_ = 1;
};

}  // namespace jemm

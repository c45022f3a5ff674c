// junit.xml, written case by case so that its size never matters to memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "judge/report.h"

namespace jemm {

/// Turns test cases into the body of a test suite, and knows the head that goes before it.
class JunitSuite {
 public:
  /// A test case; `findings`: what failed in it; `error`: what kept it from being judged.
  /// Returns its XML. One of a request has question_id "" and one of a question its id.
  std::string test_case(std::string_view case_id, std::string_view question_id, double seconds,
                        const std::vector<Finding>& findings, std::string_view error = {});
  /// What goes before and behind all test cases, once they are known.
  std::string head(const Report& report) const;
  std::string tail() const;

 private:
  std::uint64_t n_tests_ = 0, n_failures_ = 0, n_errors_ = 0;
  double seconds_ = 0;
};

}  // namespace jemm

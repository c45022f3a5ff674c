// No format of a redacted report holds a word of the requests.
#include <doctest/doctest.h>

#include "base/sha256.h"
#include "core/judge/sample_report.h"
#include "judge/junit.h"
#include "judge/render.h"

namespace {

using namespace jemm;
using namespace jemm::test;

constexpr std::array kSecrets = {"case-",     "is-it-urgent", "approve", "reject",
                                 "colleague", "someone",      "models/", "27b-bf16-fla"};

std::string junit(const Report& report) {
  JunitSuite suite;
  const std::string cases =
      suite.test_case(redacted_id("case-12"), redacted_id("is-it-urgent"), 0, report.findings);
  return suite.head(report) + cases + suite.tail();
}

std::vector<std::string> all_formats(const Report& report) {
  return {report_terminal(report, false),
          report_json(report),
          report_markdown(report),
          report_html(report),
          github_annotations(report),
          github_summary(report),
          junit(report)};
}

TEST_CASE("redacted reports hold no id, candidate, quotation or path") {
  for (const Verdict verdict : {Verdict::kDrift, Verdict::kFail}) {
    const Report plain = sample_report(verdict);
    const Report report = redacted(plain);
    for (const std::string& text : all_formats(report)) {
      for (const std::string secret : kSecrets) {
        CAPTURE(secret);
        CHECK(text.find(secret) == std::string::npos);
      }
    }
    for (const std::string secret : kSecrets) {  // which the plain one does hold
      CAPTURE(secret);
      CHECK(report_json(plain).find(secret) != std::string::npos);
    }
  }
}

TEST_CASE("redacted reports of hostile text hold none of it") {
  Report report = hostile_report();
  report.version = report.gates.name = "from no request";
  for (const std::string& text : all_formats(redacted(report))) {
    CHECK(text.find("alert(1)") == std::string::npos);
    CHECK(text.find("xxxx") == std::string::npos);
  }
}

TEST_CASE("ids become the start of their hash, candidates letters, types stay") {
  const Report report = redacted(sample_report(Verdict::kFail));
  CHECK(report.findings[0].case_id == sha256_hex("case-12").substr(0, 12));
  CHECK(report.findings[0].what == "the winner differs, reference margin 0.024");
  CHECK(report.worst[0].candidates == std::vector<std::string>{"A", "B", "C"});
  CHECK(report.worst[0].type == sample_report(Verdict::kFail).worst[0].type);
  CHECK(report.reason == "One sentence without ids.");
  CHECK(report.reference.name.empty());
  CHECK(report.reference.facts[0].second == "bfloat16");
  CHECK(redacted_id("") == "");
  CHECK(report_json(redacted(report)) == report_json(report));
}

}  // namespace

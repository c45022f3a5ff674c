// junit.xml against its schema; what counts as failure, error and skipped.
#include "judge/junit.h"

#include <doctest/doctest.h>

#include "core/judge/sample_report.h"
#include "core/judge/tools.h"

namespace {

using namespace jemm;
using namespace jemm::test;

class Checker {
 public:
  /// True for a document that the schema accepts.
  bool accepts(const std::string& xml) const {
    const std::string file = dir_.write("junit.xml", xml);
    return run_shell("xmllint --noout --schema '" JEMM_SOURCE_DIR "/tests/core/judge/junit.xsd' '" +
                     file + "' 2>&1")
               .code == 0;
  }
  /// The value of an XPath expression.
  std::string value(const std::string& xml, const std::string& xpath) const {
    const std::string file = dir_.write("junit.xml", xml);
    std::string out = run_shell("xmllint --xpath \"" + xpath + "\" '" + file + "'").out;
    while (out.ends_with('\n')) out.pop_back();
    return out;
  }

 private:
  TestDir dir_;
};

std::string document(const Report& report) {
  JunitSuite suite;
  std::string cases = suite.test_case("case-1", "", 0.25, {});
  cases += suite.test_case("case-1", "q", 1, {});
  cases += suite.test_case("case-12", "is-it-urgent", 0.5, report.findings);
  cases += suite.test_case("case-13", "", 0, {}, "the engine failed");
  cases += suite.test_case("case-14", "q", 0, report.findings, "no logits");
  return suite.head(report) + cases + suite.tail();
}

TEST_CASE("every document is as the schema says") {
  const Checker checker;
  for (const Verdict verdict :
       {Verdict::kPass, Verdict::kWithinNoise, Verdict::kDrift, Verdict::kFail, Verdict::kError}) {
    CHECK(checker.accepts(document(sample_report(verdict))));
  }
  for (const Report& report : {zero_report(), empty_report(), not_finite_report()}) {
    CHECK(checker.accepts(document(report)));
  }
  const std::string good = document(sample_report(Verdict::kFail));
  CHECK_FALSE(checker.accepts(good.substr(0, good.size() - 3)));
  std::string odd = good;
  odd.replace(odd.find("<failure"), 8, "<fault  ");
  CHECK_FALSE(checker.accepts(odd));
}

TEST_CASE("a finding is a failure, what could not be judged an error, never both") {
  const Checker checker;
  const std::string xml = document(sample_report(Verdict::kFail));
  const auto value = [&](const std::string& xpath) { return checker.value(xml, xpath); };
  const std::string cases = "//testsuite[@name='cases']";
  CHECK(value("string(" + cases + "/@tests)") == "5");
  CHECK(value("string(" + cases + "/@failures)") == "1");
  CHECK(value("string(" + cases + "/@errors)") == "2");
  CHECK(value("string(" + cases + "/@time)") == "1.750");
  CHECK(value("count(" + cases + "/testcase/failure)") == "1");
  CHECK(value("count(" + cases + "/testcase/error)") == "2");
  CHECK(value("string(//failure[@type='flip']/../@classname)") == "case-12");
  CHECK(value("string(//failure[@type='flip']/../@name)") == "question is-it-urgent");
  CHECK(value("string(//testcase[@classname='case-13']/error/@message)") == "the engine failed");
  CHECK(value("string(//testcase[@classname='case-1'][1]/@name)") == "request");
}

TEST_CASE("the head counts what the document holds") {
  const Checker checker;
  for (const Verdict verdict : {Verdict::kPass, Verdict::kFail, Verdict::kError}) {
    const std::string xml = document(sample_report(verdict));
    const auto value = [&](const std::string& xpath) { return checker.value(xml, xpath); };
    CHECK(value("string(/testsuites/@tests)") == value("count(//testcase)"));
    CHECK(value("string(/testsuites/@failures)") == value("count(//failure)"));
    CHECK(value("string(/testsuites/@errors)") == value("count(//error)"));
    CHECK(value("string(/testsuites/@time)") == "1.750");
    CHECK(value("sum(//testsuite/@tests)") == value("count(//testcase)"));
    CHECK(value("sum(//testsuite/@skipped)") == value("count(//skipped)"));
  }
}

TEST_CASE("a run that is not a pass is never all green, absent stages are skipped") {
  const Checker checker;
  JunitSuite none;
  const auto verdict = [&](const Report& report, const std::string& xpath) {
    return checker.value(none.head(report) + none.tail(),
                         "count(//testcase[@name='verdict']" + xpath + ")");
  };
  CHECK(verdict(sample_report(Verdict::kPass), "[not(*)]") == "1");
  CHECK(verdict(sample_report(Verdict::kWithinNoise), "[not(*)]") == "1");
  CHECK(verdict(sample_report(Verdict::kDrift), "/failure") == "1");
  CHECK(verdict(sample_report(Verdict::kFail), "/failure") == "1");
  CHECK(verdict(sample_report(Verdict::kError), "/error") == "1");
  const std::string pass = document(sample_report(Verdict::kPass));
  CHECK(checker.value(pass, "string(//testcase[@name='usage']/skipped/@message)") == "absent");
  CHECK(checker.value(pass, "count(//testcase[@name='accept']/*)") == "0");
  const std::string gate = "//testcase[@name='probability.max']/failure/@message";
  CHECK(checker.value(document(not_finite_report()), "string(" + gate + ")") ==
        "value NaN, budget 0.046 = 2 x 0.023, share NaN, smallest that passes none");
}

TEST_CASE("text of any bytes is kept as valid XML") {
  const Checker checker;
  const Report report = hostile_report();
  JunitSuite suite;
  std::string cases = suite.test_case(hostile_text(), hostile_text(), 0, report.findings);
  cases += suite.test_case(std::string(100'000, 'x'), "", 0, {}, hostile_text());
  const std::string xml = suite.head(report) + cases + suite.tail();
  CHECK(checker.accepts(xml));
  const std::string name = checker.value(xml, "string(//testsuite[2]/testcase[1]/@classname)");
  CHECK(name.starts_with("<script>alert(1)</script>]]>&amp;\"'|"));
  CHECK(name.find("\\u001b[31m\\u0001\\u007f\\ud83d\\xff\\u202e") != std::string::npos);
  CHECK(checker.value(xml, "string(//failure[@type='flip']/@message)").ends_with("(and 199 more)"));
}

}  // namespace

// Answers from the goldens' own logits, and hand-worked ones.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "contract/answer.h"
#include "contract/python_text.h"
#include "core/contract/golden_lines.h"

namespace jemm {
namespace {

Question make_question(QuestionType type, std::vector<std::string> candidates) {
  return {"q", type, std::move(candidates), ""};
}

std::vector<float> logits_of(const JsonValue& question) {
  std::vector<float> logits;
  for (const JsonValue& logit : testing::elements(*question.find("logits"))) {
    logits.push_back(static_cast<float>(testing::number_of(logit)));
  }
  return logits;
}

QuestionType type_named(std::string_view name) {
  for (const auto type : {QuestionType::kChoice, QuestionType::kNoul}) {
    if (name == question_type_name(type)) return type;
  }
  return QuestionType::kScore;
}

/// The answer with every number made equal, so that only fields, ids, winner and order can differ.
std::string shape_of(const Answer& answer) {
  Answer blank = answer;
  for (double& p : blank.probabilities) p = 0.5;
  blank.confidence = blank.expected_value = 0.5;
  return answer_json(blank);
}

struct Counts {
  std::size_t answers = 0;
  std::size_t probabilities = 0;
  std::size_t bit_equal = 0;
  std::size_t same_text = 0;
};

bool close(double a, double b) {
  return std::abs(a - b) <= 1e-15 * std::abs(b);
}

/// One answer of a golden's response against ours from its logits.
void check_answer(const JsonValue& question, const JsonValue& golden, double temperature,
                  Counts& counts) {
  std::vector<std::string> ids;
  for (const JsonValue& id : testing::elements(*question.find("candidates"))) {
    ids.emplace_back(id.text());
  }
  const Question ours = make_question(type_named(testing::text_at(question, "type")), ids);
  const Answer answer = make_answer(ours, calibrate(logits_of(question), temperature));

  // The golden's own numbers, written by our writer, must give the golden's own text.
  Answer theirs = answer;
  theirs.probabilities.clear();
  for (JsonCursor p(*golden.find("probabilities")); !p.at_end(); p.advance()) {
    theirs.probabilities.push_back(p.value().number());
  }
  theirs.confidence = golden.find("confidence")->number();
  const auto expected = golden.find("expected_value");
  if (expected) theirs.expected_value = expected->number();
  CHECK(answer_json(theirs) == compact_json(golden));
  CHECK(shape_of(answer) == shape_of(theirs));

  REQUIRE(answer.probabilities.size() == theirs.probabilities.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    CHECK(close(answer.probabilities[i], theirs.probabilities[i]));
    counts.bit_equal += answer.probabilities[i] == theirs.probabilities[i];
    ++counts.probabilities;
  }
  CHECK(close(answer.confidence, theirs.confidence));
  CHECK(close(answer.expected_value, theirs.expected_value));
  // From the golden's own probabilities the compensated sum must be equal to the last bit.
  CHECK(make_answer(ours, theirs.probabilities).expected_value == theirs.expected_value);
  counts.same_text += answer_json(answer) == compact_json(golden);
  ++counts.answers;
}

Counts check_golden(const std::string& name, const std::string& fixture) {
  const std::string root = JEMM_SOURCE_DIR;
  const auto config =
      testing::golden_lines(root + "/fixtures/" + fixture + "/adapter/decision_config.json");
  Counts counts;
  for (const auto& line : testing::golden_lines(root + "/golden/" + name + "/cases.jsonl")) {
    const JsonValue golden = line->root();
    const auto response = golden.find("response");
    if (!response) continue;
    const std::string id = testing::text_at(golden, "id");
    CAPTURE(id);
    const bool has_images = golden.find("images").has_value();
    const double temperature =
        config.front()->root().find(has_images ? "mm_temperature" : "temperature")->number();
    for (const JsonValue& question : testing::elements(*golden.find("questions"))) {
      const auto answer = response->find("answers")->find(testing::text_at(question, "id"));
      REQUIRE(answer.has_value());
      check_answer(question, *answer, temperature, counts);
    }
  }
  MESSAGE(name << ": " << counts.answers << " answers, " << counts.same_text << " equal in text; "
               << counts.probabilities << " probabilities, " << counts.bit_equal << " bit-equal");
  return counts;
}

}  // namespace

TEST_CASE("answers of the goldens from their own logits") {
  CHECK(check_golden("demo-fp32-cpu", "demo").answers > 120);
  CHECK(check_golden("text-fp32-cpu", "tiny-a").answers > 120);
}

TEST_CASE("probabilities of hand-worked logits") {
  const std::vector<float> equal = {3.0f, 3.0f, 3.0f, 3.0f};
  for (const double p : calibrate(equal, 0.84)) CHECK(p == doctest::Approx(0.25).epsilon(1e-15));
  // log 3 apart at temperature 1: 3 to 1. Halving the temperature squares the odds: 9 to 1.
  const std::vector<float> odds = {static_cast<float>(std::log(3.0)), 0.0f};
  CHECK(calibrate(odds, 1.0)[0] == doctest::Approx(0.75).epsilon(1e-7));
  CHECK(calibrate(odds, 0.5)[0] == doctest::Approx(0.9).epsilon(1e-7));
  CHECK(calibrate(std::vector<float>{-7.0f}, 2.0) == std::vector<double>{1.0});
  // Far apart: the loser's tail is kept, not flushed; a huge winner does not overflow.
  const std::vector<float> apart = {3.0e38f, -3.0e38f};
  CHECK(calibrate(apart, 1.0) == std::vector<double>{1.0, 0.0});
  CHECK(calibrate(std::vector<float>{0.0f, -700.0f}, 1.0)[1] ==
        doctest::Approx(std::exp(-700.0)).epsilon(1e-12));
}

TEST_CASE("a logit that is not finite is an engine error") {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    try {
      calibrate(std::vector<float>{0.0f, bad}, 1.0);
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kDevice);
    }
  }
}

TEST_CASE("a temperature that makes a finite logit infinite or no number is an error") {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const double temperature : {5e-324, 0.0, kNan}) {
    for (const float logit : {0.5f, -20.0f}) {
      CAPTURE(temperature);
      try {
        calibrate(std::vector<float>{logit, 0.0f}, temperature);
        FAIL_CHECK("accepted");
      } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::kDevice);
        CHECK(std::string(error.what()).find("logit 0 of 2") == 0);
      }
    }
  }
  // The quotients' differences may be infinite all the same: 3e38 / 2e-270 is 1.5e308.
  CHECK(calibrate(std::vector<float>{3e38f, -3e38f}, 2e-270) == std::vector<double>{1.0, 0.0});
}

TEST_CASE("ties choose the first, fields keep the reference's order") {
  const Answer choice = make_answer(make_question(QuestionType::kChoice, {"b", "a"}), {0.5, 0.5});
  CHECK(choice.winner == 0);
  CHECK(answer_json(choice) ==
        R"({"type":"choice","choice":"b","probabilities":{"b":0.5,"a":0.5},"confidence":0.5})");
  const Answer noul = make_answer(make_question(QuestionType::kNoul, {"yes", "no"}), {0.25, 0.75});
  CHECK(answer_json(noul) ==
        R"({"type":"noul","noul":0.25,"probabilities":{"yes":0.25,"no":0.75},"confidence":0.75})");
  const Answer score =
      make_answer(make_question(QuestionType::kScore, {"0", "1", "2"}), {0.25, 0.25, 0.5});
  CHECK(answer_json(score) ==
        R"({"type":"score","probabilities":{"0":0.25,"1":0.25,"2":0.5},"confidence":0.5,)"
        R"("expected_value":1.25})");
  CHECK_THROWS_AS(make_answer(make_question(QuestionType::kNoul, {"yes", "no"}), {1.0}), Error);
}

TEST_CASE("the expected value is CPython's compensated sum") {
  // On CPython 3.12: sum(i * 0.1 for i in range(10)) is 4.5, the plain sum 4.500000000000001.
  std::vector<std::string> levels;
  for (int i = 0; i < 10; ++i) levels.push_back(std::to_string(i));
  const Answer answer =
      make_answer(make_question(QuestionType::kScore, levels), std::vector<double>(10, 0.1));
  CHECK(answer.expected_value == 4.5);
}

TEST_CASE("ids are written as JSON: controls escaped, lone surrogates as escapes") {
  CHECK(json_string("a\"\\/\b\f\n\r\t\x01\x1F\x7F") == R"("a\"\\/\b\f\n\r\t\u0001\u001f)"
                                                       "\x7F\"");
  CHECK(json_string(std::string_view("a\0b", 3)) == R"("a\u0000b")");
  CHECK(json_string("\xC3\xA9\xE2\x80\xA8\xF0\x9F\x99\x82") ==
        "\"\xC3\xA9\xE2\x80\xA8\xF0\x9F\x99\x82\"");
  CHECK(json_string("\xED\xA0\xBD\xED\xB8\x80") == R"("\ud83d\ude00")");
}

}  // namespace jemm

// report.json against docs/report.schema.json, and the schema against broken reports.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "core/judge/sample_report.h"
#include "core/judge/tools.h"
#include "judge/render.h"

namespace {

using namespace jemm;
using namespace jemm::test;
using nlohmann::json;

class ReportSchema {
 public:
  ReportSchema() {
    const json source = json::parse(read_file(JEMM_SOURCE_DIR "/docs/report.schema.json"));
    valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(source), schema_);
  }
  /// What is wrong first; empty for a valid report.
  std::string fault(const json& report) const {
    valijson::Validator validator;
    valijson::ValidationResults results;
    if (validator.validate(schema_, valijson::adapters::NlohmannJsonAdapter(report), &results)) {
      return "";
    }
    valijson::ValidationResults::Error error;
    results.popError(error);
    return error.description.empty() ? "invalid" : error.description;
  }

 private:
  valijson::Schema schema_;
};

json report(Verdict verdict) {
  return json::parse(report_json(sample_report(verdict)));
}

TEST_CASE("every report is as the schema says") {
  const ReportSchema schema;
  for (const Verdict verdict :
       {Verdict::kPass, Verdict::kWithinNoise, Verdict::kDrift, Verdict::kFail, Verdict::kError}) {
    CHECK(schema.fault(report(verdict)) == "");
  }
  for (const Report& other : {zero_report(), empty_report(), not_finite_report(), hostile_report(),
                              redacted(hostile_report())}) {
    CHECK(schema.fault(json::parse(report_json(other))) == "");
  }
}

TEST_CASE("the schema refuses broken reports") {
  const ReportSchema schema;
  const json good = report(Verdict::kFail);
  const auto refuses = [&](std::string_view pointer, const json& value) {
    json broken = good;
    broken[json::json_pointer(std::string(pointer))] = value;
    CAPTURE(pointer);
    CHECK(schema.fault(broken) != "");
  };
  refuses("/schema", "jemm-report/2");
  refuses("/verdict", "OK");
  refuses("/reason", nullptr);
  refuses("/surprise", 1);
  refuses("/counts/cases", -1);
  refuses("/counts/cases", 1.5);
  refuses("/stages/0/stage", "layer.7");
  refuses("/stages/0/state", "fine");
  refuses("/stages/0/surprise", 1);
  refuses("/stages/5/rms/max", "nan");
  refuses("/gate_results/0/share", "much");
  refuses("/gate_results/0/outcome", "over");
  refuses("/findings/0/kind", "odd");
  refuses("/findings/0/question", -1);
  refuses("/gates/stage_rms", 0.5);
  refuses("/worst/0/reference", nullptr);
  refuses("/gates_sha256", "abc");
  for (const auto& [key, value] : good.items()) {
    json broken = good;
    broken.erase(key);
    CAPTURE(key);
    CHECK(schema.fault(broken) != "");
  }
}

TEST_CASE("gates and stages have every figure") {
  const json within = report(Verdict::kWithinNoise);
  const json& gate = within.at("gate_results").at(1);
  CHECK(gate.at("name") == "probability.max");
  CHECK(gate.at("value") == 0.021);
  CHECK(gate.at("at_most") == 0.01);
  CHECK(gate.at("times_noise") == 2);
  CHECK(gate.at("noise") == 0.023);
  CHECK(gate.at("budget") == 0.046);
  CHECK(gate.at("share").get<double>() == doctest::Approx(0.45652).epsilon(1e-4));
  CHECK(gate.at("smallest_passing") == 0.021);
  CHECK(gate.at("smallest_passing_times_noise").get<double>() ==
        doctest::Approx(0.91304).epsilon(1e-4));
  CHECK(gate.at("outcome") == "within noise");
  CHECK(gate.at("value_at") == json{{"case", "case-50"}, {"question", 2}});
  CHECK(within.at("stages").at(0).at("state") == "passed");
  CHECK(within.at("stages").at(0).at("rms") == nullptr);
  CHECK(within.at("stages").at(5).at("stage") == "layer.00");
  CHECK(within.at("stages").back().at("state") == "absent");
  CHECK(within.at("gates").at("name") == "strict");
}

TEST_CASE("what is not finite is a string, and no budget would pass") {
  const json parsed = json::parse(report_json(not_finite_report()));
  CHECK(parsed.at("stages").at(6).at("rms").at("max") == "NaN");
  CHECK(parsed.at("stages").at(6).at("rms").at("median") == "Infinity");
  CHECK(parsed.at("worst").at(0).at("kl") == "-Infinity");
  const json& gate = parsed.at("gate_results").at(1);
  CHECK(gate.at("value") == "NaN");
  CHECK(gate.at("smallest_passing") == nullptr);
  CHECK(gate.at("outcome") == "over budget");
}

TEST_CASE("text of any bytes is kept as valid JSON") {
  const json parsed = json::parse(report_json(hostile_report()));
  const std::string reason = parsed.at("reason");
  CHECK(reason.starts_with("<script>alert(1)</script>]]>&amp;\"'|`b`"));
  CHECK(reason.find("\n## h\r\n::error::i%0A") != std::string::npos);
  CHECK(reason.find("\x1b[31m\x01\x7f\\ud83d\\xff") != std::string::npos);
  CHECK(parsed.at("findings").size() == 200);
  CHECK(parsed.at("counts").at("findings") == 1234);
  CHECK(parsed.at("findings").at(0).at("case").get<std::string>().size() == 100'000);
}

}  // namespace

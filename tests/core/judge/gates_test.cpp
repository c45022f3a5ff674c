// Budgets, presets and gates files.
#include "judge/gates.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "base/error.h"

namespace jemm {
namespace {

Gauge gauge(double value, Budget limits, std::optional<double> noise = {}) {
  return {.value = value, .limits = limits, .noise = noise};
}

/// Kind and text of what parsing throws.
std::string refusal(const std::string& json) {
  try {
    parse_gates(json, "gates.json");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kInput);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a budget is the larger of the number and the multiple of the noise") {
  const Budget both{.at_most = 0.01, .times_noise = 2.0};
  CHECK(gauge(0.01, both).outcome() == Outcome::kPass);
  CHECK(gauge(0.0101, both).outcome() == Outcome::kOver);
  CHECK(gauge(0.0101, both, 0.1).outcome() == Outcome::kWithinNoise);
  CHECK(gauge(0.2, both, 0.1).outcome() == Outcome::kWithinNoise);
  CHECK(gauge(0.2001, both, 0.1).outcome() == Outcome::kOver);
  CHECK(gauge(0.01, both, 0.001).outcome() == Outcome::kPass);  // noise never narrows
  CHECK(*gauge(0.05, both, 0.1).budget() == 0.2);
  CHECK(*gauge(0.05, both, 0.1).share() == 0.25);
}

TEST_CASE("without a budget nothing is judged, and nothing passes for it") {
  CHECK(gauge(1e9, {}).outcome() == Outcome::kNotGated);
  CHECK(!gauge(1e9, {}).share());
  // A multiple of a noise that is not known is no budget.
  CHECK(gauge(1e9, {.at_most = {}, .times_noise = 2.0}).outcome() == Outcome::kNotGated);
}

TEST_CASE("what is not a number is over every budget") {
  const Budget budget{.at_most = 1e300, .times_noise = 2.0};
  CHECK(gauge(std::numeric_limits<double>::quiet_NaN(), budget).outcome() == Outcome::kOver);
  CHECK(gauge(std::numeric_limits<double>::infinity(), budget).outcome() == Outcome::kOver);
}

TEST_CASE("zero against a budget of zero passes; anything else does not") {
  const Budget zero{.at_most = 0.0, .times_noise = {}};
  CHECK(gauge(0, zero).outcome() == Outcome::kPass);
  CHECK(!gauge(0, zero).share());
  CHECK(gauge(1e-300, zero).outcome() == Outcome::kOver);
  CHECK(std::isinf(*gauge(1e-300, zero).share()));
}

TEST_CASE("presets are what the specification names") {
  CHECK(*gate_preset("fp32").probability_median.at_most == 1e-5);
  CHECK(*gate_preset("fp32").probability_max.at_most == 3e-4);
  CHECK(*gate_preset("fp32").stage_rms.at_most == 5e-4);
  CHECK(*gate_preset("fp32-trained").probability_max.at_most == 1e-5);
  CHECK(*gate_preset("fp32-trained").stage_rms.at_most == 1e-5);
  CHECK(*gate_preset("strict").probability_max.at_most == 0.01);
  CHECK(*gate_preset("strict").flip_margin.at_most == 0.02);
  CHECK(*gate_preset("system1-omni").probability_max.at_most == 0.02);
  CHECK(*gate_preset("system1-omni").expected_value_max.at_most == 0.1);
  CHECK(*gate_preset("system1-omni").flip_margin.at_most == 0.05);
  CHECK_THROWS_AS(gate_preset("lenient"), Error);
}

TEST_CASE("printed gates read back the same") {
  for (const std::string_view name : gate_preset_names()) {
    Gates gates = gate_preset(name);
    gates.stage_rms_of[{StageKind::kLayer, 7}] = {.at_most = 0.125, .times_noise = {}};
    gates.threshold = 0.75;
    const std::string json = gates_json(gates);
    CHECK(gates_json(parse_gates(json, "gates.json")) == json);
  }
}

TEST_CASE("a gates file that is not understood is refused by key") {
  CHECK(refusal("[]") != "");
  CHECK(refusal("{}").find("format") != std::string::npos);
  CHECK(refusal(R"({"format":"jemm-gates/2"})").find("format") != std::string::npos);
  const auto with = [](const std::string& rest) {
    return refusal(R"({"format":"jemm-gates/1",)" + rest + "}");
  };
  CHECK(with(R"("probabilty_max":{})").find("probabilty_max") != std::string::npos);
  CHECK(with(R"("probability_max":0.1)").find("probability_max") != std::string::npos);
  CHECK(with(R"("probability_max":{"at_most":-1})").find("at_most") != std::string::npos);
  CHECK(with(R"("probability_max":{"at_most":"1"})").find("at_most") != std::string::npos);
  CHECK(with(R"("probability_max":{"atmost":1})").find("atmost") != std::string::npos);
  CHECK(with(R"("stage_rms_of":{"tokens":{}})").find("tokens") != std::string::npos);
  CHECK(with(R"("stage_rms_of":{"layer.7":{}})").find("layer.7") != std::string::npos);
  CHECK(with(R"("threshold":1e999)") != "");
  CHECK(with(R"("stage_rms_of":{"layer.07":{"at_most":1}})") == "");
}

TEST_CASE("stage names are read exactly, and sets by kind") {
  CHECK(stage_name({StageKind::kLayer, 7}) == "layer.07");
  CHECK(stage_name({StageKind::kLayer, 123}) == "layer.123");
  CHECK(parse_stage("layer.07") == StageId{StageKind::kLayer, 7});
  for (const char* name : {"layer.7", "layer.", "layer", "layer.-1", "layer.007", "layer.1x", "",
                           "Layer.07", "final_norm ", "layer.99999999999"}) {
    CAPTURE(name);
    CHECK(!parse_stage(name));
  }
  CHECK(parse_stage("image.rgb") == StageId{StageKind::kImageRgb});
  CHECK(StageSet::parse("accept,image").names() == "accept,image.rgb,image.grid,image.pixels");
  CHECK(!StageSet::parse("accept,prompt,tokens,image,positions").needs_engine());
  CHECK(StageSet::parse("vision").needs_engine());
  CHECK(StageSet::parse("usage").needs_engine());
  for (const char* list : {"", "accept,", ",accept", "accept prompt", "layer.00", "all"}) {
    CAPTURE(list);
    CHECK_THROWS_AS(StageSet::parse(list), Error);
  }
  CHECK(StageSet::parse(StageSet::all().names()).names() == StageSet::all().names());
}

}  // namespace jemm

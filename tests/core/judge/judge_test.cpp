// Comparison and verdict on cases made by hand.
#include "judge/judge.h"

#include <doctest/doctest.h>

#include <cmath>

#include "base/error.h"
#include "judge/case_reader.h"
#include "judge/distance.h"
#include "judge/faults.h"

namespace jemm {
namespace {

const std::string kCase = R"({"id":"c1","raw":"{}","status":"ok",
  "images":[{"width":4,"height":2,"rgb_sha256":"aa","grid_thw":[1,2,4],"pixel_values_sha256":"bb"}],
  "questions":[
    {"id":"q","type":"choice","candidates":["x","y","z"],"prompt":"a long prompt","token_ids":[1,2,3],
     "position_ids_sha256":"cc","logits":[2.0,1.0,0.5]},
    {"id":"s","type":"score","candidates":["0","1"],"prompt":"p","token_ids":[4],"logits":[0.5,-0.5]}],
  "response":{"model":"JEMM","answers":{
    "q":{"type":"choice","choice":"x","probabilities":{"x":0.5,"y":0.3,"z":0.2},"confidence":0.5},
    "s":{"type":"score","probabilities":{"0":0.75,"1":0.25},"confidence":0.75,"expected_value":0.25}},
    "usage":{"input_tokens":4,"output_tokens":0}}})";

CaseRecord sample() {
  CaseRecord record = read_case(kCase, "case");
  for (const StageId stage : {StageId{StageKind::kVision}, StageId{StageKind::kLayer, 0},
                              StageId{StageKind::kLayer, 1}, StageId{StageKind::kFinalNorm}}) {
    record.tensors.push_back({0, stage, {1.0f, -5.0f, 0.25f, 2.0f}});
  }
  return record;
}

Report judge(const std::vector<std::pair<CaseRecord, CaseRecord>>& cases, const Gates& gates,
             const StageSet& stages = StageSet::all()) {
  Judge judge(gates, stages, std::nullopt);
  for (const auto& [reference, observed] : cases) {
    judge.add(compare_cases(reference, observed, stages), nullptr);
  }
  return judge.finish();
}

/// The sample with the probabilities of its first answer replaced, its fields made to follow.
CaseRecord with_probabilities(double x, double y, double z) {
  CaseRecord record = sample();
  AnswerRecord& answer = record.response->answers[0];
  answer.probabilities[0].second = x;
  answer.probabilities[1].second = y;
  answer.probabilities[2].second = z;
  const Winner winner = winner_of(std::vector<double>{x, y, z});
  answer.texts[1].second = answer.probabilities[winner.index].first;
  answer.numbers[0].second = answer.probabilities[winner.index].second;
  return record;
}

}  // namespace

TEST_CASE("equal cases pass, every stage compared") {
  const Report report = judge({{sample(), sample()}}, gate_preset("fp32-trained"));
  CHECK(report.verdict == Verdict::kPass);
  CHECK(report.n_findings == 0);
  CHECK(report.n_questions == 2);
  for (const StageSummary& stage : report.stages) {
    CAPTURE(stage_name(stage.stage));
    CHECK(stage.n_compared > 0);
  }
}

TEST_CASE("each planted fault is caught and blamed on its stage") {
  REQUIRE(data_faults().size() >= 30);
  for (const DataFault& fault : data_faults()) {
    CAPTURE(fault.name);
    CaseRecord observed = sample();
    fault.plant(observed);
    const Report report = judge({{sample(), observed}}, gate_preset("fp32-trained"));
    CHECK((report.verdict == Verdict::kFail || report.verdict == Verdict::kDrift));
    REQUIRE(report.bisection.overall);
    CHECK(stage_name(*report.bisection.overall) == stage_name(fault.stage));
    REQUIRE(!report.findings.empty());
    CHECK(report.findings.front().kind == fault.kind);
    // Exact faults and values that are not finite do not depend on budgets at all.
    if (fault.kind == FindingKind::kOverBudget) continue;
    CHECK(judge({{sample(), observed}}, Gates{}).verdict == Verdict::kFail);
  }
}

TEST_CASE("a fault that the reference has itself is no pass either") {
  CaseRecord broken = sample();
  broken.tensors[1].values[0] = NAN;
  CHECK(judge({{broken, sample()}}, Gates{}).verdict == Verdict::kFail);
  CHECK(judge({{broken, broken}}, Gates{}).verdict == Verdict::kFail);
  CaseRecord named = sample();
  named.unknown_tensors.push_back("c1/0/layer.1");
  CHECK(judge({{named, sample()}}, Gates{}).verdict == Verdict::kFail);
}

TEST_CASE("distances are those of the definitions") {
  const Report report =
      judge({{sample(), with_probabilities(0.46, 0.34, 0.2)}}, gate_preset("strict"));
  CHECK(report.distance.drift.max == doctest::Approx(0.04).epsilon(1e-12));
  CHECK(report.distance.total_variation.max == doctest::Approx(0.04).epsilon(1e-12));
  const double kl = 0.5 * std::log(0.5 / 0.46) + 0.3 * std::log(0.3 / 0.34);
  CHECK(report.distance.kl.max == doctest::Approx(kl).epsilon(1e-12));
  CHECK(report.distance.drift.median == doctest::Approx(0.02).epsilon(1e-12));  // of 0.04 and 0
  CHECK(report.verdict == Verdict::kDrift);
  CHECK(report.n_findings == 1);
}

TEST_CASE("tensor errors are RMS ratios, tensor by tensor") {
  const std::vector<float> reference = {3, 4};
  const std::vector<float> x = {3, 4.5f};
  CHECK(tensor_distance(std::span(x), std::span(reference)).rms_ratio == doctest::Approx(0.1));
  CHECK(tensor_distance(std::span(x), std::span(reference)).max_abs == 0.5);
  const std::vector<float> zeros = {0, 0};
  CHECK(tensor_distance(std::span(zeros), std::span(zeros)).rms_ratio == 0);
  CHECK(std::isinf(tensor_distance(std::span(x), std::span(zeros)).rms_ratio));
  CHECK(tensor_distance(std::span(zeros), std::span(reference)).rms_ratio == 1);
}

TEST_CASE("winners must agree from the margin on, not below it") {
  Gates gates;
  gates.flip_margin.at_most = 0.2;  // the reference's very lead
  const Report at = judge({{sample(), with_probabilities(0.3, 0.5, 0.2)}}, gates);
  CHECK(at.verdict == Verdict::kFail);
  CHECK(at.findings.front().kind == FindingKind::kFlip);
  gates.flip_margin.at_most = 0.2001;
  const Report below = judge({{sample(), with_probabilities(0.3, 0.5, 0.2)}}, gates);
  CHECK(below.verdict == Verdict::kPass);
  CHECK(below.agreement.n == 2);
  CHECK(below.agreement.n_agree == 1);
}

TEST_CASE("the smallest budget that would pass does pass, and any less does not") {
  const std::pair<CaseRecord, CaseRecord> pair{sample(), with_probabilities(0.3, 0.5, 0.2)};
  Gates gates = gate_preset("strict");
  const Report first = judge({pair}, gates);
  for (const GateResult& gate : first.gate_results) {
    if (gate.name == "probability.max") gates.probability_max.at_most = gate.gauge.value;
    if (gate.name == "probability.far_share") gates.far_share.at_most = gate.gauge.value;
    if (gate.name == "decision.flip_margin") gates.flip_margin.at_most = gate.gauge.value;
  }
  CHECK(first.verdict == Verdict::kFail);
  CHECK(judge({pair}, gates).verdict == Verdict::kPass);
  Gates tighter = gates;
  tighter.probability_max.at_most = std::nextafter(*gates.probability_max.at_most, 0.0);
  CHECK(judge({pair}, tighter).verdict == Verdict::kDrift);
  tighter = gates;
  tighter.far_share.at_most = std::nextafter(*gates.far_share.at_most, 0.0);
  CHECK(judge({pair}, tighter).verdict == Verdict::kDrift);
  tighter = gates;
  tighter.flip_margin.at_most = std::nextafter(*gates.flip_margin.at_most, 0.0);
  CHECK(judge({pair}, tighter).verdict == Verdict::kFail);
}

TEST_CASE("noise widens budgets, and the verdict says so") {
  NoiseLevels noise;
  noise.probability_max = 0.03;
  const StageSet stages = StageSet::all();
  const auto verdict = [&](double moved) {
    Judge judge(gate_preset("strict"), stages, noise);
    judge.add(compare_cases(sample(), with_probabilities(0.5 - moved, 0.3 + moved, 0.2), stages),
              nullptr);
    return judge.finish().verdict;
  };
  CHECK(verdict(0.009) == Verdict::kPass);
  CHECK(verdict(0.04) == Verdict::kWithinNoise);
  CHECK(verdict(0.061) == Verdict::kDrift);
}

TEST_CASE("an answer is far by the noise of its own case, and few answers may be") {
  const StageSet stages = StageSet::all();
  Gates gates;
  gates.far_answer = {.at_most = 0.05, .times_noise = 2};
  const auto far_share = [&](double moved, std::optional<double> noise_moved) {
    Judge judge(gates, stages, std::nullopt);
    const auto compared = [&](double by) {
      return compare_cases(sample(), with_probabilities(0.5 - by, 0.3 + by, 0.2), stages);
    };
    const CaseComparison noise = compared(noise_moved.value_or(0));
    judge.add(compared(moved), noise_moved ? &noise : nullptr);
    judge.add(compare_cases(sample(), sample(), stages), nullptr);
    for (const GateResult& gate : judge.finish().gate_results) {
      if (gate.name == "probability.far_share") return gate.gauge.value;
    }
    return -1.0;
  };
  CHECK(far_share(0.04, std::nullopt) == 0);
  CHECK(far_share(0.06, std::nullopt) == 0.25);  // one of four answers
  CHECK(far_share(0.06, 0.02) == 0.25);
  CHECK(far_share(0.06, 0.031) == 0);
  CHECK(far_share(0.07, 0.031) == 0.25);

  const auto verdict = [&](double share) {
    gates.far_share.at_most = share;
    return judge({{sample(), with_probabilities(0.44, 0.36, 0.2)}}, gates).verdict;
  };
  CHECK(verdict(0.5) == Verdict::kPass);
  CHECK(verdict(0.49) == Verdict::kDrift);
  gates.far_answer = {};
  CHECK(judge({{sample(), sample()}}, gates).gate_results.size() == 4);  // no share without a limit
}

TEST_CASE("nothing evaluated is an error, never a pass") {
  CHECK(judge({}, Gates{}).verdict == Verdict::kError);
  CaseRecord refused;
  refused.id = "r";
  refused.error = ErrorRecord{422, "ValueError", "no questions"};
  const Report all_refused = judge({{refused, refused}}, gate_preset("strict"));
  CHECK(all_refused.verdict == Verdict::kError);
  CHECK(all_refused.n_refused == 1);
  // Stages that the golden does not have are absent, and by themselves nothing to pass on.
  CaseRecord bare = sample();
  bare.tensors.clear();
  const Report absent = judge({{bare, sample()}}, Gates{}, StageSet::parse("layer,final_norm"));
  CHECK(absent.verdict == Verdict::kError);
  for (const StageSummary& stage : absent.stages) CHECK(stage.n_compared == 0);
}

TEST_CASE("refusals: class and wording, and what the reference could not mean") {
  const auto refused = [](int http, const std::string& type, const std::string& detail) {
    CaseRecord record;
    record.id = "r";
    record.body = "{}";  // as the sample's
    record.error = ErrorRecord{http, type, detail};
    return record;
  };
  const auto n_findings = [&](const CaseRecord& reference, const CaseRecord& observed) {
    return compare_cases(reference, observed, StageSet::all()).findings.size();
  };
  const CaseRecord worded = refused(422, "ValueError", "no questions");
  CHECK(n_findings(worded, worded) == 0);
  CHECK(n_findings(worded, refused(422, "ValueError", "no question")) == 1);
  CHECK(n_findings(worded, refused(422, "TypeError", "no questions")) == 1);
  CHECK(n_findings(worded, refused(500, "ValueError", "no questions")) == 1);
  CHECK(n_findings(worded, sample()) == 1);
  const CaseRecord library = refused(422, "JSONDecodeError", "Expecting value: line 1");
  CHECK(n_findings(library, refused(422, "JSONDecodeError", "other words")) == 0);
  const CaseRecord crashed = refused(500, "StopIteration", "");
  CHECK(n_findings(crashed, refused(422, "ValueError", "a typed pad")) == 0);
  CHECK(n_findings(crashed, sample()) == 1);
  const CaseRecord utf16 = refused(422, "UnicodeDecodeError", "'utf-16-be' codec can't decode");
  CHECK(n_findings(utf16, refused(422, "JSONDecodeError", "Expecting value")) == 0);
}

TEST_CASE("what a report lists has a limit, what it counts has none") {
  Judge judge(gate_preset("strict"), StageSet::all(), std::nullopt);
  const StageSet stages = StageSet::all();
  const CaseComparison wrong = compare_cases(sample(), with_probabilities(0.2, 0.3, 0.5), stages);
  for (int i = 0; i < 5000; ++i) judge.add(wrong, nullptr);
  const Report report = judge.finish();
  CHECK(report.n_findings == 10000);  // drift and flip
  CHECK(report.findings.size() == 100);
  CHECK(report.worst.size() == 10);
  CHECK(report.points.size() <= 512);
  CHECK(report.points.size() > 256);
  CHECK(report.bisection.listed.size() == 100);
  CHECK(report.n_cases == 5000);
}

TEST_CASE("answers are missed whichever of their stages are asked for") {
  CaseRecord no_answers = sample();
  no_answers.response->answers.clear();
  CaseRecord not_finite = sample();
  not_finite.response->answers[0].probabilities[0].second = NAN;
  CaseRecord negative = sample();
  negative.response->answers[0].probabilities[0].second = -1e-7;
  for (const char* stages : {"decision", "probabilities", "accept,decision"}) {
    CAPTURE(stages);
    const StageSet set = StageSet::parse(stages);
    for (const CaseRecord& observed : {no_answers, not_finite, negative}) {
      CHECK(judge({{sample(), observed}}, gate_preset("strict"), set).verdict == Verdict::kFail);
    }
  }
  // Without weights there is no response, and nobody asked for one.
  CaseRecord bare = sample();
  bare.response.reset();
  CHECK(judge({{sample(), bare}}, Gates{}, StageSet::parse("accept,prompt")).verdict ==
        Verdict::kPass);
}

TEST_CASE("fields follow from the probabilities, no further than they moved") {
  const auto verdict = [](const CaseRecord& observed) {
    return judge({{sample(), observed}}, gate_preset("strict")).verdict;
  };
  CaseRecord observed = with_probabilities(0.491, 0.309, 0.2);  // a drift of 0.009
  CHECK(verdict(observed) == Verdict::kPass);
  observed.response->answers[0].numbers[0].second = 0.475;
  CHECK(verdict(observed) == Verdict::kFail);
  for (const char* choice : {R"(null)", R"(true)", R"(["x"])", R"({})", R"("y")"}) {
    CAPTURE(choice);
    std::string line = kCase;
    const std::string field = R"("choice":"x")";
    line.replace(line.find(field), field.size(), std::string(R"("choice":)") + choice);
    CaseRecord other = read_case(line, "line");
    other.tensors = sample().tensors;
    CHECK(verdict(other) == Verdict::kFail);
    CHECK(judge({{other, sample()}}, gate_preset("strict")).verdict == Verdict::kFail);
  }
  // A winner that flips below the margin must still be the one that is named.
  Gates wide = gate_preset("strict");
  wide.flip_margin.at_most = 0.5;
  wide.probability_max.at_most = 0.5;
  wide.far_share.at_most = 1;
  CaseRecord flipped = with_probabilities(0.3, 0.5, 0.2);
  CHECK(judge({{sample(), flipped}}, wide).verdict == Verdict::kPass);
  flipped.response->answers[0].texts[1].second = "garbage";
  CHECK(judge({{sample(), flipped}}, wide).verdict == Verdict::kFail);
}

TEST_CASE("images that one side alone has") {
  CaseRecord without = sample();
  without.images.clear();
  CHECK(judge({{without, sample()}}, Gates{}).verdict == Verdict::kFail);
  CHECK(judge({{sample(), without}}, Gates{}).verdict == Verdict::kFail);
  CHECK(judge({{sample(), without}}, Gates{}, StageSet::parse("tokens")).verdict == Verdict::kPass);
}

TEST_CASE("ratios that no double holds are not forgotten") {
  const auto with_logits = [](std::vector<double> logits) {
    CaseRecord record = sample();
    record.questions[0].logits = std::move(logits);
    return record;
  };
  const std::pair<CaseRecord, CaseRecord> sound{sample(), sample()};
  const auto verdict = [&](std::vector<double> a, std::vector<double> b) {
    return judge({{with_logits(a), with_logits(b)}, sound, sound}, gate_preset("fp32")).verdict;
  };
  CHECK(verdict({1e200, -1e200, 0}, {3e200, 1e200, 0}) == Verdict::kDrift);
  CHECK(verdict({1e-170, 2e-170, 0}, {-1e-170, -2e-170, 0}) == Verdict::kDrift);
  CHECK(verdict({0, 0, 0}, {1, 0, 0}) == Verdict::kFail);
  CaseRecord zeros = sample();
  zeros.tensors[1].values = {0, 0, 0, 0};
  CHECK(judge({{zeros, sample()}}, Gates{}).verdict == Verdict::kFail);
}

TEST_CASE("confidences that cross the threshold are counted either way") {
  Gates gates;
  gates.threshold = 0.5;
  const CaseRecord below = with_probabilities(0.48, 0.32, 0.2);
  const Report report = judge({{sample(), below}, {below, sample()}, {sample(), sample()}}, gates);
  REQUIRE(report.crossings);
  CHECK(report.crossings->n_down == 1);
  CHECK(report.crossings->n_up == 1);
  CHECK(report.crossings->listed.size() == 2);
  CHECK(report.crossings->listed[0].confidence == 0.48);
}

TEST_CASE("a single stage may have a budget of its own") {
  CaseRecord observed = sample();
  for (StageTensor& tensor : observed.tensors) tensor.values[0] += 0.01f;
  Gates gates = gate_preset("fp32");
  CHECK(judge({{sample(), observed}}, gates).verdict == Verdict::kDrift);
  for (const StageId stage : {StageId{StageKind::kVision}, StageId{StageKind::kLayer, 0},
                              StageId{StageKind::kFinalNorm}}) {
    gates.stage_rms_of[stage].at_most = 0.01;
  }
  const Report report = judge({{sample(), observed}}, gates);
  CHECK(report.verdict == Verdict::kDrift);
  REQUIRE(report.n_findings == 1);
  CHECK(stage_name(report.findings[0].stage) == "layer.01");
}

TEST_CASE("what is no mere number is listed, however late it comes") {
  Judge judge(gate_preset("strict"), StageSet::all(), std::nullopt);
  const StageSet stages = StageSet::all();
  const CaseComparison moved = compare_cases(sample(), with_probabilities(0.46, 0.34, 0.2), stages);
  for (int i = 0; i < 150; ++i) judge.add(moved, nullptr);
  CaseRecord broken = sample();
  broken.response->answers[0].probabilities[0].second = NAN;
  judge.add(compare_cases(sample(), broken, stages), nullptr);
  const Report report = judge.finish();
  CHECK(report.findings.size() == 100);
  CHECK(report.findings.back().kind == FindingKind::kNotFinite);
}

TEST_CASE("answers in another order are still those of their questions") {
  CaseRecord turned = sample();
  std::swap(turned.response->answers[0], turned.response->answers[1]);
  CaseRecord observed = with_probabilities(0.46, 0.34, 0.2);
  const Report report = judge({{turned, observed}}, gate_preset("strict"));
  REQUIRE(report.n_findings == 1);
  CHECK(report.findings[0].question == 0);
  CHECK(report.findings[0].question_id == "q");
}

TEST_CASE("the Wilson interval of known shares") {
  // Values from the formula, evaluated by CPython.
  CHECK(wilson_interval(54, 57).low == doctest::Approx(0.8563).epsilon(1e-3));
  CHECK(wilson_interval(54, 57).high == doctest::Approx(0.9819).epsilon(1e-3));
  CHECK(wilson_interval(0, 10).low == 0);
  CHECK(wilson_interval(10, 10).high == 1);
  CHECK(wilson_interval(0, 0).low == 0);
  CHECK(wilson_interval(0, 0).high == 1);
}

TEST_CASE("cases that are not well formed are refused with their place") {
  const auto refusal = [](const std::string& line) {
    try {
      read_case(line, "cases.jsonl: line 7");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kInput);
      return std::string(error.what());
    }
    return std::string();
  };
  for (const char* line :
       {"",
        "{",
        "[]",
        "null",
        R"({"raw":"","status":"ok"})",
        R"({"id":1,"raw":"","status":"ok"})",
        R"({"id":"a","status":"ok"})",
        R"({"id":"a","raw":""})",
        R"({"id":"a","raw":"","status":"fine"})",
        R"({"id":"a","raw":"","status":"error"})",
        R"({"id":"a","body_base64":"*","status":"ok"})",
        R"({"id":"a","raw":"","status":"ok","questions":{}})",
        R"({"id":"a","raw":"","status":"ok","questions":[{"id":"q"}]})",
        R"({"id":"a","raw":"","status":"ok","images":[{"width":"4"}]})",
        R"({"id":"","raw":"","status":"ok"})",
        R"({"id":"a","raw":"","status":"ok","images":[{"width":4,"height":2,"rgb_sha256":"aa",)"
        R"("grid_thw":[0,2,2]}]})",
        R"({"id":"a","raw":"","status":"ok","images":[{"width":4,"height":2,"rgb_sha256":"aa",)"
        R"("grid_thw":[1,2]}]})",
        R"({"id":"a","raw":"","status":"ok","images":[{"width":4,"height":2,"rgb_sha256":""}]})",
        R"({"id":"a","raw":"","status":"ok","response":{"answers":[]}})",
        R"({"id":"a","raw":"","status":"ok","questions":[{"id":"q","type":"t","candidates":[],)"
        R"("token_ids":[99999999999]}]})"}) {
    CAPTURE(line);
    CHECK(refusal(line).find("line 7") != std::string::npos);
  }
  const CaseRecord bytes =
      read_case(R"({"id":"\ud800","body_base64":"/wA=","status":"ok"})", "line");
  CHECK(bytes.body == std::string("\xFF\0", 2));
  CHECK(bytes.id == "\xED\xA0\x80");
  CHECK(read_case(R"({"id":"a","request": {"state": 1},"status":"ok"})", "line").body ==
        R"({"state": 1})");
}

}  // namespace jemm

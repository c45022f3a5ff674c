// What the sample reports hold.
#include "core/judge/sample_report.h"

#include <array>
#include <cmath>
#include <limits>

namespace jemm::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

StageSummary exact_stage(StageKind kind, std::uint64_t n_compared) {
  StageSummary stage;
  stage.stage = {.kind = kind};
  stage.n_compared = n_compared;
  return stage;
}

StageSummary tensor_stage(StageId id, double rms, const Budget& limits) {
  StageSummary stage;
  stage.stage = id;
  stage.n_compared = 57;
  stage.rms = {.median = rms / 3, .max = rms, .case_id = "case-12", .question = 1};
  stage.max_abs = {.median = rms, .max = 4 * rms, .case_id = "case-12", .question = 1};
  stage.rms_gauge = Gauge{.value = rms, .limits = limits, .noise = 0.8 * rms};
  return stage;
}

std::vector<StageSummary> stages(const Budget& limits) {
  std::vector<StageSummary> result;
  for (const StageKind kind : {StageKind::kAccept, StageKind::kPrompt, StageKind::kTokens,
                               StageKind::kImageRgb, StageKind::kPositions}) {
    result.push_back(exact_stage(kind, kind == StageKind::kPositions ? 0 : 60));
  }
  for (int layer = 0; layer < 24; ++layer) {
    const double rms = 0.002 * (1 + 0.12 * layer) * (layer % 4 == 3 ? 1.3 : 1);
    result.push_back(tensor_stage({.kind = StageKind::kLayer, .layer = layer}, rms, limits));
  }
  result.push_back(tensor_stage({.kind = StageKind::kFinalNorm}, 0.0071, limits));
  result.push_back(tensor_stage({.kind = StageKind::kLogits}, 0.0052, limits));
  result.push_back(exact_stage(StageKind::kProbabilities, 57));
  result.push_back(exact_stage(StageKind::kDecision, 57));
  result.push_back(exact_stage(StageKind::kUsage, 0));
  return result;
}

AnswerPoint point(int i) {
  constexpr std::array kTypes = {"choice", "noul", "score"};
  AnswerPoint answer;
  answer.case_id = "case-" + std::to_string(i);
  answer.question = i % 3;
  answer.question_id = "q" + std::to_string(i % 3);
  answer.type = kTypes[static_cast<std::size_t>(i % 3)];
  answer.n_tokens = 90 + 37 * i + (i % 7) * 210;
  answer.margin = std::fmod(0.011 + 0.137 * i, 0.97);
  answer.drift = 0.0005 * (1 + i % 11) * (1 + 0.03 * i);
  answer.kl = answer.drift * answer.drift;
  answer.total_variation = answer.drift;
  answer.noise_drift = 0.0007 * (1 + (i + 5) % 9);
  answer.flipped = 2 * answer.drift > answer.margin;
  return answer;
}

AnswerPoint worst(int i) {
  AnswerPoint answer = point(50 - 3 * i);
  answer.candidates = {"approve", "reject", "ask a colleague"};
  answer.drift = 0.021 - 0.0014 * i;
  answer.reference = {0.4, 0.38, 0.22};
  answer.observed = {0.4 - answer.drift, 0.38 + answer.drift, 0.22};
  answer.flipped = answer.drift > 0.01;
  answer.margin = 0.02;
  return answer;
}

void add_answers(Report& report) {
  report.distance = {
      .n = 57,
      .drift = {.median = 0.0032, .max = 0.021, .case_id = "case-50", .question = 2},
      .kl = {.median = 1e-5, .max = 4e-4, .case_id = "case-50", .question = 2},
      .total_variation = {.median = 0.003, .max = 0.02, .case_id = "case-50", .question = 2}};
  report.noise_distance = report.distance;
  report.noise_distance->drift.max = 0.023;
  report.agreement = {.n = 57, .n_agree = 56, .share = 56.0 / 57, .low = 0.907, .high = 0.997};
  report.noise_agreement =
      Agreement{.n = 57, .n_agree = 54, .share = 54.0 / 57, .low = 0.856, .high = 0.982};
  report.bands = {{.from = 0, .to = 0.01, .n = 3, .n_flipped = 1, .n_flipped_noise = 2},
                  {.from = 0.01, .to = 0.02, .n = 4, .n_flipped = 0, .n_flipped_noise = 1},
                  {.from = 0.02, .to = 1, .n = 50, .n_flipped = 0, .n_flipped_noise = 0}};
  report.crossings = Crossings{
      .threshold = 0.5,
      .n_up = 1,
      .n_down = 1,
      .listed = {
          {.case_id = "case-7", .question = 0, .reference_confidence = 0.498, .confidence = 0.506},
          {.case_id = "case-9",
           .question = 1,
           .reference_confidence = 0.511,
           .confidence = 0.495}}};
  report.breakdowns = {
      {.property = "tokens",
       .bins = {{.label = "64 to 512", .n = 20, .mean = 0.002, .max = 0.009},
                {.label = "512 to 4096", .n = 37, .mean = 0.004, .max = 0.021}}},
      {.property = "type",
       .bins = {{.label = "choice", .n = 30, .mean = 0.003, .max = 0.021},
                {.label = "noul", .n = 17, .mean = 0.002, .max = 0.012},
                {.label = "score", .n = 10, .mean = 0.004, .max = 0.017}}},
      {.property = "candidates",
       .bins = {{.label = "2", .n = 12, .mean = 0.002, .max = 0.009},
                {.label = "3 to 8", .n = 40, .mean = 0.0035, .max = 0.021},
                {.label = "9 to 32", .n = 5, .mean = 0.0025, .max = 0.006}}},
      {.property = "images",
       .bins = {{.label = "0", .n = 57, .mean = 0.003, .max = 0.021}, {.label = "1", .n = 0}}}};
  for (int i = 0; i < 10; ++i) report.worst.push_back(worst(i));
  for (int i = 0; i < 57; ++i) report.points.push_back(point(i));
}

void add_gates(Report& report, const Budget& drift) {
  report.gate_results = {
      {.name = "probability.median",
       .stage = {.kind = StageKind::kProbabilities},
       .n_compared = 57,
       .gauge = {.value = 0.0032, .limits = {}, .noise = 0.0041},
       .case_id = ""},
      {.name = "probability.max",
       .stage = {.kind = StageKind::kProbabilities},
       .n_compared = 57,
       .gauge = {.value = 0.021, .limits = drift, .noise = 0.023},
       .case_id = "case-50",
       .question = 2},
      {.name = "decision.flip_margin",
       .stage = {.kind = StageKind::kDecision},
       .n_compared = 57,
       .gauge = {.value = 0.008, .limits = {.at_most = 0.02, .times_noise = {}}, .noise = {}},
       .case_id = "case-3",
       .question = 0}};
}

void add_fault(Report& report, StageId stage, FindingKind kind, std::string what) {
  Finding finding;
  finding.case_id = "case-12";
  finding.question = 1;
  finding.question_id = "is-it-urgent";
  finding.stage = stage;
  finding.kind = kind;
  finding.what = std::move(what);
  finding.what_redacted = "the winner differs, reference margin 0.024";
  report.findings.push_back(finding);
  report.n_findings = report.findings.size();
  report.bisection = {.overall = stage,
                      .counts = {{stage, 1}},
                      .listed = {{.case_id = "case-12", .question = 1, .stage = stage}}};
  for (StageSummary& summary : report.stages) {
    if (summary.stage == stage) summary.n_wrong = 1;
  }
}

Side side(std::string kind, std::string name, std::string device) {
  return {.kind = std::move(kind),
          .name = std::move(name),
          .facts = {{"dtype", "bfloat16"},
                    {"device", std::move(device)},
                    {"checkpoint", "/home/someone/secret-model"}}};
}

void set_verdict(Report& report, Verdict verdict) {
  report.verdict = verdict;
  const StageId layer{.kind = StageKind::kLayer, .layer = 7};
  switch (verdict) {
    case Verdict::kPass:
      report.reason = "Every exact stage is equal and every number is within its budget.";
      break;
    case Verdict::kWithinNoise:
      report.reason = "Drift 0.021 is beyond 0.01, but within twice the reference's own 0.023.";
      break;
    case Verdict::kDrift:
      report.reason = "layer.07 is over its budget: 0.00478 of 0.004.";
      add_fault(report, layer, FindingKind::kOverBudget, "RMS ratio 0.00478, budget 0.004");
      break;
    case Verdict::kFail:
      report.reason = "A winner flips where the reference leads by 0.024 (case-12).";
      add_fault(report, {.kind = StageKind::kDecision}, FindingKind::kFlip,
                "'approve' instead of 'reject', reference margin 0.024");
      break;
    case Verdict::kError:
      report.reason = "The engine failed: out of memory.";
      break;
  }
}

Budget layer_budget(Verdict verdict) {
  if (verdict == Verdict::kPass) return {.at_most = 0.02, .times_noise = {}};
  if (verdict == Verdict::kDrift) return {.at_most = 0.004, .times_noise = {}};
  return {.at_most = 0.004, .times_noise = 2};
}

/// Every string of a report.
template <typename Change>
void change_texts(Report& report, const Change& change) {
  for (Side* one : {&report.reference, &report.observed, &*report.noise}) {
    change(one->name);
    for (auto& [name, value] : one->facts) change(value);
  }
  for (std::string* text : {&report.reason, &report.gates.name, &report.version}) change(*text);
  for (StageSummary& stage : report.stages)
    change(stage.rms.case_id), change(stage.max_abs.case_id);
  for (GateResult& gate : report.gate_results) change(gate.case_id);
  for (Finding& finding : report.findings) {
    change(finding.case_id), change(finding.question_id), change(finding.what);
  }
  for (Extreme* extreme :
       {&report.distance.drift, &report.distance.kl, &report.distance.total_variation}) {
    change(extreme->case_id);
  }
  for (Crossing& crossing : report.crossings->listed) change(crossing.case_id);
  for (Breakdown::Bin& bin : report.breakdowns[1].bins) change(bin.label);  // types
  for (auto* points : {&report.worst, &report.points}) {
    for (AnswerPoint& answer : *points) {
      change(answer.case_id), change(answer.question_id), change(answer.type);
      for (std::string& candidate : answer.candidates) change(candidate);
    }
  }
  for (FirstFault& fault : report.bisection.listed) change(fault.case_id);
}

}  // namespace

std::string hostile_text() {
  return "<script>alert(1)</script>]]>&amp;\"'|`b`*c*_d_[e](http://f.example)$g$\n## h\r\n"
         "::error::i%0A::warning title=j,k:l::m\x1b[31m\x01\x7f\xed\xa0\xbd\xff\xe2\x80\xae "
         "www.n.example";
}

Report sample_report(Verdict verdict) {
  Report report;
  report.version = "jemm 0.3.0";
  report.reference = side("golden", "27b-bf16-fla", "H200");
  report.observed = side("engine", "models/qwen-27b", "cpu");
  report.noise = side("golden", "27b-fp32", "H200");
  report.gates = gate_preset("strict");
  report.gates_sha256 = std::string(64, 'a');
  report.stage_names = StageSet::all().names();
  report.n_cases = 60;
  report.n_ok = 57;
  report.n_refused = 3;
  report.n_questions = 57;
  report.n_watched = 57;
  report.stages = stages(layer_budget(verdict));
  add_gates(report, {.at_most = verdict == Verdict::kPass ? 0.05 : 0.01, .times_noise = 2});
  add_answers(report);
  set_verdict(report, verdict);
  report.reason_redacted = "One sentence without ids.";
  return report;
}

Report zero_report() {
  Report report = sample_report(Verdict::kPass);
  for (StageSummary& stage : report.stages) {
    stage.rms.median = stage.rms.max = stage.max_abs.median = stage.max_abs.max = 0;
    if (stage.rms_gauge)
      stage.rms_gauge = Gauge{.value = 0, .limits = {.at_most = 0.0, .times_noise = 2}, .noise = 0};
  }
  for (GateResult& gate : report.gate_results) gate.gauge = {.value = 0, .limits = {}, .noise = 0};
  report.distance = {.n = 57, .drift = {}, .kl = {}, .total_variation = {}};
  for (auto* points : {&report.worst, &report.points}) {
    for (AnswerPoint& answer : *points) {
      answer.drift = answer.kl = answer.total_variation = answer.margin = 0;
      answer.noise_drift = 0;
    }
  }
  for (Breakdown& breakdown : report.breakdowns) {
    for (Breakdown::Bin& bin : breakdown.bins) bin.mean = bin.max = 0;
  }
  return report;
}

Report empty_report() {
  Report report;
  report.reference.kind = report.observed.kind = "golden";
  report.reason = "Nothing was compared.";
  return report;
}

Report not_finite_report() {
  Report report = sample_report(Verdict::kFail);
  report.stages[6].rms = {.median = kInfinity, .max = kNan, .case_id = "case-1", .question = 0};
  report.stages[6].rms_gauge->value = kNan;
  report.stages[7].rms.max = kInfinity;
  report.stages[7].rms_gauge->value = kInfinity;
  report.gate_results[1].gauge.value = kNan;
  report.distance.drift.max = kNan;
  report.distance.kl.max = kInfinity;
  for (auto* points : {&report.worst, &report.points}) {
    points->front().drift = kNan;
    points->front().kl = -kInfinity;
    points->front().margin = kInfinity;
  }
  report.worst.front().observed = {kNan, kInfinity, 0.2};
  report.breakdowns[1].bins[0].mean = kNan;
  report.breakdowns[1].bins[0].max = kInfinity;
  return report;
}

Report hostile_report() {
  Report report = sample_report(Verdict::kFail);
  Finding finding = report.findings.front();
  for (int i = 0; i < 199; ++i) {
    finding.kind = static_cast<FindingKind>(i % 9);
    report.findings.push_back(finding);
  }
  report.n_findings = 1234;
  change_texts(report, [](std::string& text) { text = hostile_text(); });
  report.findings.front().case_id = report.worst.front().case_id = std::string(100'000, 'x');
  return report;
}

}  // namespace jemm::test

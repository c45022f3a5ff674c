// A report as JSON, "jemm-report/1": every fact of it, for other programs.
#include <cmath>
#include <nlohmann/json.hpp>

#include "judge/render.h"
#include "judge/render_text.h"
#include "judge/tables.h"

namespace jemm {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no NaN and no infinities: they are the strings that JavaScript's Number reads.
Json real(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

Json real(const std::optional<double>& value) {
  return value ? real(*value) : Json(nullptr);
}

Json text(std::string_view value) {
  return valid_utf8(value);
}

template <typename T, typename Convert>
Json list(const std::vector<T>& values, const Convert& convert) {
  Json result = Json::array();
  for (const T& value : values) result.push_back(convert(value));
  return result;
}

/// A question's index; null for the request.
Json index(int question) {
  return question < 0 ? Json(nullptr) : Json(question);
}

Json side_json(const Side& side) {
  Json facts = Json::array();
  for (const auto& [name, value] : side.facts) {
    facts.push_back({{"name", text(name)}, {"value", text(value)}});
  }
  return {{"kind", text(side.kind)}, {"name", text(side.name)}, {"facts", facts}};
}

Json place_json(const std::string& case_id, int question) {
  if (case_id.empty()) return nullptr;
  return {{"case", text(case_id)}, {"question", index(question)}};
}

Json extreme_json(const Extreme& extreme) {
  return {{"median", real(extreme.median)},
          {"max", real(extreme.max)},
          {"max_at", place_json(extreme.case_id, extreme.question)}};
}

Json gauge_json(const Gauge& gauge, std::uint64_t n_compared) {
  const SmallestBudget smallest = smallest_budget(gauge);
  return {{"value", real(gauge.value)},
          {"at_most", real(gauge.limits.at_most)},
          {"times_noise", real(gauge.limits.times_noise)},
          {"noise", real(gauge.noise)},
          {"budget", real(gauge.budget())},
          {"share", real(gauge.share())},
          {"smallest_passing", real(smallest.at_most)},
          {"smallest_passing_times_noise", real(smallest.times_noise)},
          {"outcome", stage_state_name(gauge_state(gauge, n_compared))}};
}

Json gauge_json(const std::optional<Gauge>& gauge, std::uint64_t n_compared) {
  return gauge ? gauge_json(*gauge, n_compared) : Json(nullptr);
}

Json stage_json(const Report& report, const StageSummary& stage) {
  const bool compared = stage.n_compared > 0 && is_numeric(stage.stage.kind);
  const bool has_rms = compared && stage.stage.kind != StageKind::kProbabilities;
  return {{"stage", stage_name(stage.stage)},
          {"state", stage_state_name(stage_state(report, stage))},
          {"compared", stage.n_compared},
          {"wrong", stage.n_wrong},
          {"rms", has_rms ? extreme_json(stage.rms) : Json(nullptr)},
          {"max_abs", compared ? extreme_json(stage.max_abs) : Json(nullptr)},
          {"rms_gate", gauge_json(stage.rms_gauge, stage.n_compared)},
          {"max_abs_gate", gauge_json(stage.max_abs_gauge, stage.n_compared)}};
}

Json gate_json(const GateResult& gate) {
  Json json = gauge_json(gate.gauge, gate.n_compared);
  json["name"] = text(gate.name);
  json["stage"] = stage_name(gate.stage);
  json["compared"] = gate.n_compared;
  json["value_at"] = place_json(gate.case_id, gate.question);
  return json;
}

Json finding_json(const Finding& finding) {
  return {{"case", text(finding.case_id)},
          {"question", index(finding.question)},
          {"question_id", text(finding.question_id)},
          {"stage", stage_name(finding.stage)},
          {"kind", finding_kind_name(finding.kind)},
          {"what", text(finding.what)}};
}

Json distance_json(const DistanceSummary& distance) {
  return {{"answers", distance.n},
          {"drift", extreme_json(distance.drift)},
          {"kl", extreme_json(distance.kl)},
          {"total_variation", extreme_json(distance.total_variation)}};
}

Json agreement_json(const Agreement& agreement) {
  return {{"answers", agreement.n},
          {"agree", agreement.n_agree},
          {"share", real(agreement.share)},
          {"wilson_low", real(agreement.low)},
          {"wilson_high", real(agreement.high)}};
}

Json band_json(const MarginBand& band) {
  return {{"from", real(band.from)},
          {"to", real(band.to)},
          {"answers", band.n},
          {"flipped", band.n_flipped},
          {"flipped_noise", band.n_flipped_noise}};
}

Json crossings_json(const Crossings& crossings) {
  const auto one = [](const Crossing& crossing) {
    return Json{{"case", text(crossing.case_id)},
                {"question", crossing.question},
                {"reference_confidence", real(crossing.reference_confidence)},
                {"confidence", real(crossing.confidence)}};
  };
  return {{"threshold", real(crossings.threshold)},
          {"up", crossings.n_up},
          {"down", crossings.n_down},
          {"listed", list(crossings.listed, one)}};
}

Json breakdown_json(const Breakdown& breakdown) {
  const auto bin = [](const Breakdown::Bin& one) {
    return Json{{"label", text(one.label)},
                {"answers", one.n},
                {"mean", real(one.mean)},
                {"max", real(one.max)}};
  };
  return {{"property", text(breakdown.property)}, {"bins", list(breakdown.bins, bin)}};
}

Json point_json(const AnswerPoint& point) {
  return {{"case", text(point.case_id)},
          {"question", point.question},
          {"question_id", text(point.question_id)},
          {"type", text(point.type)},
          {"tokens", point.n_tokens > 0 ? Json(point.n_tokens) : Json(nullptr)},
          {"images", point.n_images},
          {"drift", real(point.drift)},
          {"kl", real(point.kl)},
          {"total_variation", real(point.total_variation)},
          {"margin", real(point.margin)},
          {"flipped", point.flipped},
          {"noise_drift", real(point.noise_drift)}};
}

Json worst_json(const AnswerPoint& point) {
  const auto number = [](double value) { return real(value); };
  Json json = point_json(point);
  json["candidates"] = list(point.candidates, text);
  json["reference"] = list(point.reference, number);
  json["observed"] = list(point.observed, number);
  return json;
}

Json bisection_json(const Bisection& bisection) {
  Json counts = Json::array();
  for (const auto& [stage, n_cases] : bisection.counts) {
    counts.push_back({{"stage", stage_name(stage)}, {"cases", n_cases}});
  }
  const auto fault = [](const FirstFault& one) {
    return Json{{"case", text(one.case_id)},
                {"question", index(one.question)},
                {"stage", stage_name(one.stage)}};
  };
  Json json;
  json["overall"] = bisection.overall ? Json(stage_name(*bisection.overall)) : Json(nullptr);
  json["counts"] = counts;
  json["listed"] = list(bisection.listed, fault);
  return json;
}

Json gates_member(const Gates& gates) {
  Gates safe = gates;
  safe.name = valid_utf8(gates.name);
  return Json::parse(gates_json(safe));
}

void add_comparison(Json& json, const Report& report) {
  json["distance"] = distance_json(report.distance);
  json["noise_distance"] =
      report.noise_distance ? distance_json(*report.noise_distance) : Json(nullptr);
  json["agreement"] = agreement_json(report.agreement);
  json["noise_agreement"] =
      report.noise_agreement ? agreement_json(*report.noise_agreement) : Json(nullptr);
  json["margin_bands"] = list(report.bands, band_json);
  json["crossings"] = report.crossings ? crossings_json(*report.crossings) : Json(nullptr);
  json["breakdowns"] = list(report.breakdowns, breakdown_json);
  json["worst"] = list(report.worst, worst_json);
  json["points"] = list(report.points, point_json);
  json["bisection"] = bisection_json(report.bisection);
}

}  // namespace

std::string report_json(const Report& report) {
  Json json;
  json["schema"] = "jemm-report/1";
  json["version"] = text(report.version);
  json["redacted"] = report.is_redacted;
  json["verdict"] = verdict_name(report.verdict);
  json["reason"] = text(report.reason);
  json["reference"] = side_json(report.reference);
  json["observed"] = side_json(report.observed);
  json["noise"] = report.noise ? side_json(*report.noise) : Json(nullptr);
  json["gates"] = gates_member(report.gates);
  json["gates_sha256"] = text(report.gates_sha256);
  json["stages_asked"] = list(stage_words(report), text);
  json["counts"] = {{"cases", report.n_cases},      {"answered", report.n_ok},
                    {"refused", report.n_refused},  {"questions", report.n_questions},
                    {"images", report.n_images},    {"watched", report.n_watched},
                    {"findings", report.n_findings}};
  json["stages"] =
      list(report.stages, [&](const StageSummary& stage) { return stage_json(report, stage); });
  json["gate_results"] = list(report.gate_results, gate_json);
  json["findings"] = list(report.findings, finding_json);
  add_comparison(json, report);
  return json.dump(1) + "\n";
}

}  // namespace jemm

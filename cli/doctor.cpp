// jemm doctor: machine, libraries, checkpoint, one request; ends in a plain verdict.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>

#include "base/error.h"
#include "commands.h"
#include "evaluate/evaluator.h"
#include "exit_codes.h"
#include "inspect_report.h"
#include "machine.h"
#include "output.h"
#include "version.h"

namespace jemm::cli {
namespace {

using Json = nlohmann::ordered_json;

struct DoctorOptions {
  ModelOptions model;
  bool as_json = false;
};

/// The demonstration checkpoint gives "search" 0.99999 (and so does the reference).
constexpr std::string_view kSelfCheck =
    R"({"state":"- search is down\n- mailer is healthy","questions":{"down":{"instructions":)"
    R"("Which service is down?","criteria":{"search":"search","mailer":"mailer"}}}})";

/// Answers the one request with the model, as decide would.
Json self_check(const ModelOptions& options) {
  const ModelFiles model =
      options.model.empty() ? open_embedded_model() : open_model_files(options);
  const Encoder encoder = open_encoder(model, options);
  const std::shared_ptr<const Checkpoint> weights = open_weights(model, encoder, options);
  const std::unique_ptr<Engine> engine =
      open_engine({.device = "cpu", .precision = {}}, weights, encoder.label_ids());
  std::optional<RequestResult> result;
  Evaluator evaluator(encoder, *engine, weights->decision(), {},
                      [&result](RequestResult&& done) { result = std::move(done); });
  evaluator.submit(kSelfCheck);
  evaluator.flush();
  if (result->error) throw *result->error;
  const Answer& answer = result->questions.at(0).answer;
  const double sum = std::accumulate(answer.probabilities.begin(), answer.probabilities.end(), 0.0);
  const bool is_sound = std::abs(sum - 1) < 1e-9;
  const bool is_right = !options.model.empty() ||
                        (answer.candidates[answer.winner] == "search" && answer.confidence > 0.999);
  return {{"ok", is_sound && is_right},
          {"engine", "cpu, fp32"},
          {"choice", answer.candidates[answer.winner]},
          {"probability", answer.confidence},
          {"latency_ms", result->latency_ms}};
}

Json libraries() {
  Json lines = Json::array();
  std::istringstream text(version_text());
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

Json examine(const DoctorOptions& options) {
  Json report = {{"schema", "jemm-doctor/1"},
                 {"versions", libraries()},
                 {"unicode", {{"split_pattern", "16.0"}, {"normalisation", "9.0"}}},
                 {"cpu", cpu_facts()},
                 {"memory", memory_facts()},
                 {"clock", clock_facts()},
                 {"gpu", gpu_facts()}};
  std::vector<std::string> problems;
  ModelOptions unread = options.model;
  unread.trust = true;  // the self-check reads every byte, unless told to trust
  const Json checkpoint = inspect_model(unread);
  report["checkpoint"] = {{"model", checkpoint["model"]},
                          {"kind", checkpoint.value("kind", "unreadable")},
                          {"refusals", checkpoint["refusals"]}};
  for (const Json& refusal : checkpoint["refusals"]) problems.push_back(refusal.get<std::string>());
  if (checkpoint.contains("memory_bytes")) {
    const std::uint64_t needed = checkpoint["memory_bytes"]["cpu_fp32"]["pass_of_2048_rows"];
    report["checkpoint"]["cpu_bytes"] = needed;
    if (needed > report["memory"]["total_bytes"].get<std::uint64_t>()) {
      problems.push_back(fmt::format("the model needs {:.1f} GB, more than this machine has",
                                     static_cast<double>(needed) / 1e9));
    }
  }
  if (problems.empty()) {
    try {
      report["self_check"] = self_check(options.model);
      if (!report["self_check"]["ok"].get<bool>()) {
        problems.push_back("the self-check's answer is wrong");
      }
    } catch (const Error& error) {
      problems.emplace_back(error.what());
    }
  }
  report["problems"] = problems;
  report["verdict"] = problems.empty() ? "ok" : "not ok";
  return report;
}

std::string report_text(const Json& report) {
  std::string text;
  for (const Json& line : report["versions"]) text += line.get<std::string>() + "\n";
  std::string features;
  for (const Json& feature : report["cpu"]["features"])
    features += " " + feature.get<std::string>();
  text += fmt::format("Unicode {} (split pattern), {} (normalisation)\n",
                      report["unicode"]["split_pattern"].get<std::string>(),
                      report["unicode"]["normalisation"].get<std::string>());
  text += fmt::format("processor: {}, {} threads,{}\n", report["cpu"]["model"].get<std::string>(),
                      report["cpu"]["threads"].dump(), features);
  text += fmt::format("memory: {:.1f} GB, {:.1f} GB available\n",
                      report["memory"]["total_bytes"].get<double>() / 1e9,
                      report["memory"]["available_bytes"].get<double>() / 1e9);
  text += fmt::format("clock: {}\n", report["clock"].dump());
#if defined(JEMM_CUDA)
  text += "GPU: CUDA engine built in; driver: ";
#else
  text += "GPU: this build has no CUDA engine; driver: ";
#endif
  text += report["gpu"]["driver"].get<std::string>() + "\n";
  for (const Json& device : report["gpu"].value("devices", Json::array())) {
    text += fmt::format("     {}, {:.1f} GB\n", device["name"].get<std::string>(),
                        device["bytes"].get<double>() / 1e9);
  }
  text += fmt::format("checkpoint: {} {}\n", report["checkpoint"]["kind"].get<std::string>(),
                      report["checkpoint"]["model"].get<std::string>());
  if (report.contains("self_check")) {
    const Json& check = report["self_check"];
    text +=
        fmt::format("one request: {} at {:.6f} in {:.1f} ms\n", check["choice"].get<std::string>(),
                    check["probability"].get<double>(), check["latency_ms"].get<double>());
  }
  for (const Json& problem : report["problems"]) {
    text += "problem: " + problem.get<std::string>() + "\n";
  }
  return text + "verdict: " + report["verdict"].get<std::string>() + "\n";
}

int run_doctor(const DoctorOptions& options) {
  const Json report = examine(options);
  Output output = Output::standard_output();
  output.write(options.as_json ? report.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"
                               : report_text(report));
  return report["verdict"] == "ok" ? kOk : kEngine;
}

}  // namespace

Command add_doctor(CLI::App& app) {
  CLI::App* command = app.add_subcommand("doctor", "Check machine, libraries and checkpoint");
  auto options = std::make_shared<DoctorOptions>();
  command->footer(
      "Examples:\n"
      "  jemm doctor\n"
      "  jemm doctor --model exported --json\n"
      "Exit: 0 all is well, 2 usage, 4 something is not");
  add_model_options(*command, options->model);
  command->add_flag("--json", options->as_json, "JSON instead of text");
  return [options] { return run_doctor(*options); };
}

}  // namespace jemm::cli

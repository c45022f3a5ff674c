// jemm parity: proves stage by stage that an engine does what the reference did.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "commands.h"
#include "exit_codes.h"
#include "judge/golden.h"
#include "model.h"
#include "output.h"
#include "parity_files.h"
#include "parity_run.h"
#include "self_test.h"
#include "subject.h"
#include "validators.h"

namespace jemm::cli {
namespace {

/// Prints the gates that a run would take: with a golden, those for its precision.
int print_gates(const ParityOptions& options) {
  std::string text;
  try {
    const bool is_fp32 =
        options.golden.empty() || Golden(options.golden).manifest().dtype == "float32";
    text = gates_json(choose_gates(options, is_fp32));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInput && error.kind() != ErrorKind::kIo) throw;
    log_line(fmt::format("error: {}", error.what()));
    return kUnusableInput;
  }
  Output::standard_output().write(text);
  return kOk;
}

int run(const ParityOptions& options) {
  if (options.self_test) return run_self_test();
  if (options.print_gates) return print_gates(options);
  if (options.golden.empty()) fail(ErrorKind::kUsage, "parity needs --golden DIR");
  if (!options.against.empty() && !options.model.model.empty()) {
    fail(ErrorKind::kUsage, "--against judges a golden, --model an engine: name one of them");
  }
  if (!options.answers.empty() && !options.stages.empty() &&
      !answer_stages().has_all(StageSet::parse(options.stages))) {
    fail(ErrorKind::kUsage, "answers can be judged by the stages {} alone",
         answer_stages().names());
  }
  if (options.report.empty()) return run_parity(options, nullptr);
  ReportFiles files(options.report, options.force, options.redact);
  return run_parity(options, &files);
}

void add_gate_options(CLI::App& command, ParityOptions& options) {
  CLI::Option* preset =
      command.add_option("--preset", options.preset, "fp32, fp32-trained, strict or system1-omni");
  CLI::Option* gates =
      command.add_option("--gates", options.gates_file, "Gates from this JSON file")
          ->excludes(preset);
  preset->excludes(gates);
  command.add_flag("--print-gates", options.print_gates, "Print the gates as JSON and stop");
  command
      .add_option("--noise", options.noise,
                  "A second golden of the same cases: budgets are multiples of what the two "
                  "references differ by")
      ->check(not_empty());
  command
      .add_option("--threshold", options.threshold,
                  "Count confidences that cross it; default: the gates', then the adapter's")
      ->check(share_validator());
  command
      .add_option("--min-questions", options.min_questions,
                  "Fewer questions than this are no pass but an error (exit 5)")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
  command
      .add_option("--stages", options.stages,
                  "Compare only these: a comma list of accept, prompt, tokens, image, "
                  "positions, vision, layer, final_norm, logits, probabilities, decision, "
                  "usage. The first five take no weights")
      ->check(not_empty());
}

void add_report_options(CLI::App& command, ParityOptions& options) {
  CLI::Option* report = command.add_option(
      "--report", options.report,
      "Write report.json, report.md, report.html, junit.xml, questions.jsonl and gates.json here");
  command.add_flag("--force", options.force, "Overwrite an earlier report")->needs(report);
  command.add_flag("--bisect", options.bisect,
                   "Print the first stage over its budget, overall and by case");
  command.add_flag("--redact", options.redact,
                   "No ids, candidates, quotations and paths in what is printed and written");
  command.add_flag("--github", options.github,
                   "Annotations and a step summary for GitHub Actions, where it is on by itself");
}

}  // namespace

Command add_parity(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "parity", "Prove stage by stage that the engine does what the reference did");
  auto options = std::make_shared<ParityOptions>();
  command->footer(
      "Examples:\n"
      "  jemm parity --golden golden/text-fp32-cpu --model BASE+ADAPTER --report out\n"
      "  jemm parity --golden GOLDEN --noise SECOND --model BASE+ADAPTER --bisect\n"
      "  jemm parity --golden GOLDEN --model BASE --stages accept,prompt,tokens,image,positions\n"
      "  jemm parity --golden A --against B\n"
      "  jemm parity --golden GOLDEN --answers answers.jsonl --gates gates.json\n"
      "  jemm parity --self-test\n"
      "Exit: 0 PASS or WITHIN-NOISE, 1 DRIFT or FAIL, 2 usage, 3 inputs unusable or of another\n"
      "  checkpoint, 4 engine or device, 5 nothing evaluated, 6 output failed, 130 interrupted");
  command->add_option("--golden", options->golden, "What the reference said")->check(not_empty());
  add_model_options(*command, options->model);
  command->add_option("--against", options->against, "Judge this golden instead of an engine")
      ->check(not_empty());
  command
      ->add_option("--answers", options->answers,
                   "Judge what decide wrote about the golden's requests, given to it as {\"id\", "
                   "\"raw\"}")
      ->check(not_empty())
      ->excludes("--against")
      ->excludes("--model");
  add_engine_options(*command, options->engine);
  add_gate_options(*command, *options);
  add_report_options(*command, *options);
  const std::vector<CLI::Option*> others = command->get_options();
  CLI::Option* self_test =
      command->add_flag("--self-test", options->self_test,
                        "Plant every known fault and show that the judge blames the right stage");
  for (CLI::Option* other : others) {
    if (other != command->get_help_ptr()) self_test->excludes(other);
  }
  add_progress_option(*command, options->progress);
  return [options] { return run(*options); };
}

}  // namespace jemm::cli

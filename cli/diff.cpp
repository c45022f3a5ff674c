// jemm diff: two outputs of decide, or two reports of parity.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "base/error.h"
#include "commands.h"
#include "exit_codes.h"
#include "judge/diff.h"
#include "output.h"
#include "progress.h"
#include "validators.h"

namespace jemm::cli {
namespace {

struct DiffCommandOptions {
  std::string a, b;
  DiffOptions diff;
  bool as_json = false;
};

/// The directory of a report that is named by it or by its report.json; empty for other files.
std::string report_directory(const std::string& path) {
  if (std::filesystem::is_directory(path)) return path;
  const std::filesystem::path file(path);
  if (file.filename() != "report.json") return "";
  return file.has_parent_path() ? file.parent_path().string() : ".";
}

int run_diff(const DiffCommandOptions& options) {
  const std::string a = report_directory(options.a);
  const std::string b = report_directory(options.b);
  if (a.empty() != b.empty()) {
    fail(ErrorKind::kUsage, "{} and {} are not of the same kind", options.a, options.b);
  }
  DiffResult result;
  try {
    result = a.empty() ? diff_answers(options.a, options.b, options.diff)
                       : diff_reports(a, b, options.diff);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInput && error.kind() != ErrorKind::kIo) throw;
    log_line(fmt::format("error: {}", error.what()));
    return kUnusableInput;
  }
  Output output = Output::standard_output();
  output.write(options.as_json ? diff_json(result) : diff_text(result));
  output.close();
  if (result.n_common == 0) {
    log_line("error: A and B have nothing in common");
    return kNoRequests;
  }
  return result.regressions.n == 0 ? kOk : kGateFailed;
}

}  // namespace

Command add_diff(CLI::App& app) {
  CLI::App* command = app.add_subcommand("diff", "What moved and what got worse from A to B");
  auto options = std::make_shared<DiffCommandOptions>();
  command->footer(
      "Examples:\n"
      "  jemm diff answers-old.jsonl answers-new.jsonl\n"
      "  jemm diff report-old report-new\n"
      "Exit: 0 no regression, 1 a regression, 2 usage, 3 unusable inputs, 5 nothing in common");
  command->add_option("A", options->a, "Output of decide, or report directory of parity")
      ->required();
  command->add_option("B", options->b, "The same kind, newer")->required();
  command
      ->add_option("--margin", options->diff.margin,
                   "A winner that changes is a regression where the lead was at least this; "
                   "default 0.02")
      ->check(share_validator());
  command->add_flag("--json", options->as_json, "Print JSON");
  return [options] { return run_diff(*options); };
}

}  // namespace jemm::cli

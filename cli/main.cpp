// jemm: a table of contents.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>

#include "base/error.h"
#include "commands.h"
#include "exit_codes.h"
#include "output.h"
#include "progress.h"
#include "signals.h"
#include "validators.h"
#include "version.h"

namespace jemm::cli {
namespace {

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return kUsage;
    case ErrorKind::kRequest:
      return kSomeFailed;
    case ErrorKind::kIo:
      return kInputOutput;
    case ErrorKind::kInput:
    case ErrorKind::kDevice:
      return kEngine;
  }
  return kEngine;
}

bool is_command(const CLI::App& app, const std::string& name) {
  const auto commands = app.get_subcommands({});
  return std::any_of(commands.begin(), commands.end(),
                     [&](const CLI::App* command) { return command->get_name() == name; });
}

/// Help and version, which a full disk can swallow like any other output.
int print(const std::string& text) {
  try {
    Output::standard_output().write(text);
    return kOk;
  } catch (const Error& error) {
    log_line(fmt::format("error: {}", error.what()));
    return exit_code(error.kind());
  }
}

int run(int argc, char** argv) {
  CLI::App app("jemm: answers JEMM decision requests and checks engines against the reference");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  std::map<const CLI::App*, Command> commands;
  for (Command (*add)(CLI::App&) : {add_decide, add_encode, add_plan, add_parity, add_record,
                                    add_diff, add_bench, add_export, add_inspect, add_doctor}) {
    Command command = add(app);
    CLI::App* subcommand = app.get_subcommands({}).back();
    subcommand->set_version_flag("--version", version_text());
    commands[subcommand] = std::move(command);
    for (CLI::Option* option : subcommand->get_options()) {
      if (option->get_items_expected_max() > 0) option->check(not_empty());
    }
  }
  if (argc > 1 && argv[1][0] != '-' && !is_command(app, argv[1])) {
    std::string names;
    for (const CLI::App* subcommand : app.get_subcommands({})) {
      names += (names.empty() ? "" : ", ") + subcommand->get_name();
    }
    log_line(fmt::format("error: no command {}; commands are {}", argv[1], names));
    return kUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const int status = app.exit(error, out, err);
    log_text(err.str());
    if (status != 0) return kUsage;
    return print(out.str());
  }
  try {
    return commands.at(app.get_subcommands().front())();
  } catch (const Error& error) {
    log_line(fmt::format("error: {}", error.what()));
    return interrupted() ? kInterrupted : exit_code(error.kind());
  } catch (const std::filesystem::filesystem_error& error) {
    log_line(fmt::format("error: {}: {}", error.path1().string(), error.code().message()));
    return kInputOutput;
  } catch (const std::exception& error) {
    log_line(fmt::format("error: {}", error.what()));
    return kEngine;
  }
}

}  // namespace
}  // namespace jemm::cli

int main(int argc, char** argv) {
  jemm::cli::reserve_standard_descriptors();
  jemm::cli::install_signal_handlers();
  return jemm::cli::run(argc, argv);
}

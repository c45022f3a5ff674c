// jemm: a table of contents.
#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "commands.h"
#include "exit_codes.h"
#include "progress.h"
#include "signals.h"
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
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
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

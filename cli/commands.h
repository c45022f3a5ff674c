// The commands that main offers.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace jemm::cli {

/// Adds a subcommand and returns what runs it: an exit code, or an Error.
using Command = std::function<int()>;
Command add_decide(CLI::App& app);
Command add_encode(CLI::App& app);
Command add_plan(CLI::App& app);
Command add_parity(CLI::App& app);
Command add_record(CLI::App& app);
Command add_diff(CLI::App& app);
Command add_bench(CLI::App& app);
Command add_export(CLI::App& app);
Command add_inspect(CLI::App& app);
Command add_doctor(CLI::App& app);

}  // namespace jemm::cli

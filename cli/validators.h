// What several commands' options may hold.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace jemm::cli {

/// A number from `low` to `high`, which NaN is not.
CLI::Validator number_validator(double low, double high);
/// A number from 0 to 1.
CLI::Validator share_validator();
/// auto, cpu, cuda or cuda:N.
CLI::Validator device_validator();
/// Any text but none.
CLI::Validator not_empty();
/// One of these names, as they are.
CLI::Validator choice(const std::vector<std::string>& names);

/// Adds an option that takes one of the names and sets `value` to what stands beside it.
template <typename T>
CLI::Option* add_choice(CLI::App& command, const std::string& option, T& value,
                        const std::vector<std::pair<std::string, T>>& choices,
                        const std::string& help) {
  std::vector<std::string> names;
  std::string preset;
  for (const auto& [name, of_name] : choices) {
    names.push_back(name);
    if (of_name == value) preset = name;
  }
  const auto set = [&value, choices](const std::string& text) {
    for (const auto& [name, of_name] : choices) {
      if (name == text) value = of_name;
    }
  };
  return command.add_option_function<std::string>(option, set, help)
      ->check(choice(names))
      ->default_str(preset);
}

}  // namespace jemm::cli

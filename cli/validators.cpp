// The checks behind the validators, each "" for what may be.
#include "validators.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>

namespace jemm::cli {
namespace {

/// "" for a device that could exist, else the fault.
std::string check_device(const std::string& text) {
  const bool numbered = text.size() > 5 && text.starts_with("cuda:") &&
                        text.find_first_not_of("0123456789", 5) == std::string::npos;
  if (text == "auto" || text == "cpu" || text == "cuda" || numbered) return "";
  return "no such device: " + text;
}

std::string check_not_empty(const std::string& text) {
  return text.empty() ? "is empty" : "";
}

}  // namespace

CLI::Validator number_validator(double low, double high) {
  const auto check = [low, high](const std::string& text) {
    double value = std::numeric_limits<double>::quiet_NaN();
    if (CLI::detail::lexical_cast(text, value) && value >= low && value <= high)
      return std::string();
    return fmt::format("not a number from {} to {}: {}", low, high, text);
  };
  return CLI::Validator(check, "NUMBER");
}

CLI::Validator share_validator() {
  return number_validator(0, 1).description("SHARE");
}

CLI::Validator device_validator() {
  return CLI::Validator(check_device, "DEVICE");
}

CLI::Validator choice(const std::vector<std::string>& names) {
  const auto check = [names](const std::string& text) {
    if (std::find(names.begin(), names.end(), text) != names.end()) return std::string();
    return fmt::format("'{}' is none of {}", text, fmt::join(names, ", "));
  };
  return CLI::Validator(check, fmt::format("{}", fmt::join(names, "|")));
}

CLI::Validator not_empty() {
  return CLI::Validator(check_not_empty, "");
}

}  // namespace jemm::cli

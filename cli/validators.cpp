// The checks behind the validators, each "" for what may be.
#include "validators.h"

#include <CLI/CLI.hpp>

namespace jemm::cli {
namespace {

/// "" for a device that could exist, else the fault.
std::string check_device(const std::string& text) {
  const bool numbered = text.size() > 5 && text.starts_with("cuda:") &&
                        text.find_first_not_of("0123456789", 5) == std::string::npos;
  if (text == "auto" || text == "cpu" || text == "cuda" || numbered) return "";
  return "no such device: " + text;
}

/// "" for a number from 0 to 1, which NaN is not.
std::string check_share(const std::string& text) {
  double value = -1;
  if (CLI::detail::lexical_cast(text, value) && value >= 0 && value <= 1) return "";
  return "not a number from 0 to 1: " + text;
}

std::string check_not_empty(const std::string& text) {
  return text.empty() ? "is empty" : "";
}

}  // namespace

CLI::Validator share_validator() {
  return CLI::Validator(check_share, "SHARE");
}

CLI::Validator device_validator() {
  return CLI::Validator(check_device, "DEVICE");
}

CLI::Validator not_empty() {
  return CLI::Validator(check_not_empty, "TEXT");
}

}  // namespace jemm::cli

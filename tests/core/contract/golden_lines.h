// The lines of a golden directory, parsed by the project's own JSON reader.
#pragma once

#include <doctest/doctest.h>

#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "contract/json.h"

namespace jemm::testing {

/// The parsed lines of a JSONL file; the documents stay where they are.
inline std::vector<std::unique_ptr<JsonDocument>> golden_lines(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE_MESSAGE(file.good(), "cannot open " << path);
  std::vector<std::unique_ptr<JsonDocument>> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(std::make_unique<JsonDocument>(parse_json(line)));
  }
  REQUIRE_MESSAGE(!lines.empty(), path << " is empty");
  return lines;
}

/// The text under `key`; fails the test when there is none.
inline std::string text_at(const JsonValue& value, std::string_view key) {
  const auto found = value.find(key);
  REQUIRE_MESSAGE(found.has_value(), "no " << key);
  return std::string(found->text());
}

/// The values of a list.
inline std::vector<JsonValue> elements(const JsonValue& list) {
  std::vector<JsonValue> out;
  for (JsonCursor entry(list); !entry.at_end(); entry.advance()) out.push_back(entry.value());
  return out;
}

/// A number, written as an integer or a float.
inline double number_of(const JsonValue& value) {
  return value.kind() == JsonKind::kInt ? std::stod(std::string(value.text())) : value.number();
}

}  // namespace jemm::testing

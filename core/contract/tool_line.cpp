// A tool's JSON description as one line: name — description | params: a*, b=default.
#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "contract/candidates.h"
#include "contract/python_text.h"

namespace jemm {
namespace {

constexpr std::size_t kMaxDefaultCodePoints = 24;

/// json.loads of a description; nothing where it does not parse. Other errors pass.
std::optional<JsonDocument> parse_description(std::string_view description) {
  try {
    return parse_json(description);
  } catch (const Error& error) {
    if (error.type() != "JSONDecodeError") throw;
    return std::nullopt;
  }
}

/// Python's set(required), of which only the strings can ever match a key; sorted.
std::vector<std::string_view> required_names(const JsonValue& parameters) {
  std::vector<std::string_view> names;
  const std::optional<JsonValue> required = parameters.find("required");
  if (!required || !required->is_list()) return names;
  for (JsonCursor entry(*required); !entry.at_end(); entry.advance()) {
    const JsonValue value = entry.value();
    if (value.is_list()) throw Error::request("TypeError", "unhashable type: 'list'");
    if (value.is_dict()) throw Error::request("TypeError", "unhashable type: 'dict'");
    if (value.is_string()) names.push_back(value.text());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// "=" and the start of the default's text; empty when there is no default, null or "".
std::string default_text(const JsonValue& parameter) {
  const std::optional<JsonValue> value = parameter.find("default");
  if (!value || value->is_null() || (value->is_string() && value->text().empty())) return "";
  std::string out = "=";
  out += first_code_points(flat(python_str(*value)), kMaxDefaultCodePoints);
  return out;
}

/// " | params: " and the parameter names joined by ", ", each with its marks; empty when there are
/// none (one may have an empty name).
std::string parameter_list(const JsonValue& parameters) {
  const std::vector<std::string_view> required = required_names(parameters);
  const std::optional<JsonValue> properties = parameters.find("properties");
  std::string out;
  for (JsonCursor entry(properties && properties->is_dict() ? *properties : parameters);
       !entry.at_end(); entry.advance()) {
    const std::string_view key = entry.key();
    const bool is_object = entry.value().is_dict();
    // Without an object behind them these are JSON Schema's own words, not parameters.
    if (!is_object && (key == "properties" || key == "required" || key == "type")) continue;
    out += out.empty() ? " | params: " : ", ";
    out += key;
    if (!is_object) continue;
    if (std::binary_search(required.begin(), required.end(), key)) out += '*';
    out += default_text(entry.value());
  }
  return out;
}

}  // namespace

std::string tool_line(std::string_view description) {
  const std::optional<JsonDocument> document = parse_description(description);
  const std::optional<JsonValue> name = document ? document->root().find("name") : std::nullopt;
  if (!name) return flat(description);
  std::string line = flat(python_str(*name));
  if (const auto text = document->root().find("description")) {
    const std::string flattened = flat(python_str(*text));
    if (!flattened.empty()) line += " \xE2\x80\x94 " + flattened;  // U+2014
  }
  const std::optional<JsonValue> parameters = document->root().find("parameters");
  if (parameters && parameters->is_dict()) line += parameter_list(*parameters);
  return line;
}

}  // namespace jemm

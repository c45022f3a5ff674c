// str, repr and json.dumps of JSON values, and of the scalars inside them.
#include <cmath>

#include <fmt/format.h>

#include "base/utf8.h"
#include "contract/answer.h"
#include "contract/python_text.h"

namespace jemm {
namespace {

enum class Style { kJson, kPython };

void append_repr(std::string& out, std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  out += quote;
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t start = offset;
    const char32_t c = next_code_point(text, offset);
    const auto code = static_cast<std::uint32_t>(c);
    if (c == '\\' || c == static_cast<unsigned char>(quote)) {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if ((c >= 0x20 && c < 0x7F) || is_printable(c)) {
      out += text.substr(start, offset - start);
    } else if (c <= 0xFF) {
      out += fmt::format("\\x{:02x}", code);
    } else if (c <= 0xFFFF) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      out += fmt::format("\\U{:08x}", code);
    }
  }
  out += quote;
}

enum class Surrogates { kRaw, kEscaped };

/// A quoted JSON string without ensure_ascii; with escaped surrogates it is real UTF-8.
void append_json_string(std::string& out, std::string_view text, Surrogates surrogates) {
  out += '"';
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t start = offset;
    const char32_t c = next_code_point(text, offset);
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (c < 0x20 || (surrogates == Surrogates::kEscaped && is_surrogate(c))) {
          out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c));
        } else {
          out += text.substr(start, offset - start);
        }
    }
  }
  out += '"';
}

void append_text(std::string& out, std::string_view text, Style style) {
  if (style == Style::kJson) {
    append_json_string(out, text, Surrogates::kRaw);
  } else {
    append_repr(out, text);
  }
}

std::string json_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return python_float(value);
}

void append_scalar(std::string& out, JsonValue value, Style style) {
  const bool json = style == Style::kJson;
  switch (value.kind()) {
    case JsonKind::kNull:
      out += json ? "null" : "None";
      break;
    case JsonKind::kFalse:
      out += json ? "false" : "False";
      break;
    case JsonKind::kTrue:
      out += json ? "true" : "True";
      break;
    case JsonKind::kInt:
      out += value.text();
      break;
    case JsonKind::kFloat:
      out += json ? json_float(value.number()) : python_float(value.number());
      break;
    default:
      append_text(out, value.text(), style);
  }
}

/// Writes a value of any depth without recursion.
std::string write(JsonValue root, Style style) {
  const std::string_view comma = style == Style::kJson ? "," : ", ";
  const std::string_view colon = style == Style::kJson ? ":" : ": ";
  std::string out;
  std::vector<JsonCursor> open;
  const auto begin = [&](JsonValue value) {
    if (value.is_list() || value.is_dict()) {
      out += value.is_list() ? '[' : '{';
      open.emplace_back(value);
    } else {
      append_scalar(out, value, style);
    }
  };
  begin(root);
  while (!open.empty()) {
    JsonCursor& entry = open.back();
    if (entry.at_end()) {
      out += entry.in_dict() ? '}' : ']';
      open.pop_back();
      continue;
    }
    // Only a bracket just opened ends in one: text ends in a quote, a key in its colon.
    if (out.back() != '[' && out.back() != '{') out += comma;
    if (entry.in_dict()) {
      append_text(out, entry.key(), style);
      out += colon;
    }
    const JsonValue value = entry.value();
    entry.advance();
    begin(value);
  }
  return out;
}

}  // namespace

std::string python_repr(std::string_view text) {
  std::string out;
  append_repr(out, text);
  return out;
}

std::string python_repr(JsonValue value) {
  return write(value, Style::kPython);
}

std::string python_str(JsonValue value) {
  return value.is_string() ? std::string(value.text()) : python_repr(value);
}

std::string compact_json(JsonValue value) {
  return write(value, Style::kJson);
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text, Surrogates::kEscaped);
  return out;
}

std::string python_float(double value) {
  if (std::isnan(value)) return "nan";  // without the sign that fmt shows
  // fmt's shortest form has Python's digits and exponents; only a whole number lacks its ".0".
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".einf") == std::string::npos) text += ".0";
  return text;
}

}  // namespace jemm

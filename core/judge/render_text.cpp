// Escapes, widths and figures of reports.
#include "judge/render_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "base/utf8.h"
#include "contract/answer.h"

namespace jemm {
namespace {

struct CodePointRange {
  char32_t first, last;
};

template <std::size_t N>
bool in_ranges(const std::array<CodePointRange, N>& ranges, char32_t c) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [c](CodePointRange range) { return range.first <= c && c <= range.last; });
}

/// Controls, line separators, marks of direction, byte order mark, noncharacters of the plane.
constexpr std::array<CodePointRange, 8> kUnprintable = {{{0x00, 0x1F},
                                                         {0x7F, 0x9F},
                                                         {0x061C, 0x061C},
                                                         {0x200E, 0x200F},
                                                         {0x2028, 0x202E},
                                                         {0x2066, 0x2069},
                                                         {0xFEFF, 0xFEFF},
                                                         {0xFFFE, 0xFFFF}}};
constexpr std::array<CodePointRange, 9> kTwoColumns = {{{0x1100, 0x115F},
                                                        {0x2E80, 0xA4CF},
                                                        {0xAC00, 0xD7A3},
                                                        {0xF900, 0xFAFF},
                                                        {0xFE30, 0xFE6F},
                                                        {0xFF00, 0xFF60},
                                                        {0xFFE0, 0xFFE6},
                                                        {0x1F300, 0x1FAFF},
                                                        {0x20000, 0x3FFFD}}};
constexpr std::array<CodePointRange, 3> kNoColumn = {
    {{0x0300, 0x036F}, {0x200B, 0x200D}, {0xFE00, 0xFE0F}}};

std::size_t columns_of(char32_t c) {
  if (in_ranges(kNoColumn, c)) return 0;
  return in_ranges(kTwoColumns, c) ? 2 : 1;
}

std::string escape_of(char32_t c) {
  switch (c) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return fmt::format("\\u{:04x}", static_cast<unsigned>(c));
  }
}

/// Copies valid text; `escapes(c)` says which other code points than surrogates become escapes.
template <typename Escapes>
std::string escaped(std::string_view text, const Escapes& escapes) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t offset = 0; offset < text.size();) {
    Utf8Fault fault;
    const std::size_t length = code_point_length(text.substr(offset), fault);
    if (length == 0) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[offset++]));
      continue;
    }
    const std::size_t start = offset;
    const char32_t c = next_code_point(text, offset);
    if (is_surrogate(c) || escapes(c)) {
      result += escape_of(c);
    } else {
      result += text.substr(start, length);
    }
  }
  return result;
}

/// Length of the start of `text` that takes at most `columns`.
std::size_t prefix_length(std::string_view text, std::size_t columns) {
  std::size_t offset = 0;
  std::size_t taken = 0;
  while (offset < text.size()) {
    std::size_t next = offset;
    taken += columns_of(next_code_point(text, next));
    if (taken > columns) break;
    offset = next;
  }
  return offset;
}

/// What stands before a code point that Markdown or GitHub would take for markup.
std::string_view markdown_escape(std::string_view text, std::size_t i) {
  switch (text[i]) {
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '&':
      return "&amp;";
    case '$':  // GitHub sets formulas between two of them, escaped or not
      return "&#36;";
    case '@':  // mentions
      return "&#64;";
    case '\\':
      return "\\\\";
    case '|':
      return "\\|";
    case '`':
      return "\\`";
    case '*':
      return "\\*";
    case '_':
      return "\\_";
    case '~':
      return "\\~";
    case '[':
      return "\\[";
    case ']':
      return "\\]";
    case '#':
      return "\\#";
    case '!':
      return "\\!";
    case ':':  // links without brackets
      return text.substr(i, 3) == "://" ? "\\:" : "";
    case '.':
      return i >= 3 && (text[i - 1] | 0x20) == 'w' ? "\\." : "";
    default:
      return "";
  }
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  return escaped(text, [](char32_t) { return false; });
}

std::string json_text(std::string_view text) {
  return json_string(valid_utf8(text));
}

std::string json_number(double value) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  return python_float(value);
}

std::string printable(std::string_view text) {
  return escaped(text, [](char32_t c) { return in_ranges(kUnprintable, c); });
}

std::size_t text_columns(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t offset = 0; offset < text.size();) {
    columns += columns_of(next_code_point(text, offset));
  }
  return columns;
}

std::string shortened(std::string_view text, std::size_t columns) {
  if (text_columns(text) <= columns) return std::string(text);
  const std::size_t tail_columns = (columns - 1) / 3;
  const std::string_view head = text.substr(0, prefix_length(text, columns - 1 - tail_columns));
  std::size_t start = text.size();
  for (std::size_t at = text.size(); at > 0 && text.size() - at <= 4 * tail_columns;) {
    --at;
    if ((text[at] & 0xC0) == 0x80) continue;
    if (text_columns(text.substr(at)) > tail_columns) break;
    start = at;
  }
  return fmt::format("{}…{}", head, text.substr(start));
}

std::string html_text(std::string_view text) {
  std::string result;
  for (const char byte : printable(text)) {
    switch (byte) {
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '&':
        result += "&amp;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += byte;
    }
  }
  return result;
}

std::string markdown_text(std::string_view text) {
  const std::string source = printable(text);
  std::string result;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const std::string_view escape = markdown_escape(source, i);
    if (escape.empty()) {
      result += source[i];
    } else {
      result += escape;
    }
  }
  return result;
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return fmt::format("{:.3g}", value == 0 ? 0.0 : value);
}

std::string number_text_up(double value) {
  const std::string nearest = number_text(value);
  if (std::strtod(nearest.c_str(), nullptr) >= value) return nearest;
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 2);
  return number_text(value + 0.51 * unit);
}

std::string percent_text(double share) {
  if (!std::isfinite(share)) return number_text(share);
  const double percent = 100 * share;
  if (share > 1 && percent < 100.5) return ">100 %";
  if (percent >= 10000) return fmt::format("{:.2g} %", percent);
  if (percent > 0 && percent < 0.95) return fmt::format("{:.1g} %", percent);
  return fmt::format("{:.0f} %", percent);
}

std::string count_text(std::size_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

}  // namespace jemm

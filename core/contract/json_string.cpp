// Strings of a JSON text: escapes, surrogates, and the errors of CPython's scanstring.
#include "base/utf8.h"
#include "contract/json_reader.h"

namespace jemm {
namespace {

constexpr bool is_high_surrogate(char32_t c) {
  return c >= 0xD800 && c <= 0xDBFF;
}
constexpr bool is_low_surrogate(char32_t c) {
  return c >= 0xDC00 && c <= 0xDFFF;
}

/// Four hexadecimal digits, or nothing.
std::optional<char32_t> hex4(std::string_view text) {
  if (text.size() < 4) return std::nullopt;
  char32_t value = 0;
  for (const char c : text.substr(0, 4)) {
    const char lower = static_cast<char>(c | 0x20);
    if (c >= '0' && c <= '9') {
      value = value * 16 + static_cast<char32_t>(c - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      value = value * 16 + static_cast<char32_t>(lower - 'a' + 10);
    } else {
      return std::nullopt;
    }
  }
  return value;
}

char simple_escape(char c) {
  switch (c) {
    case '"':
    case '\\':
    case '/':
      return c;
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return 0;
  }
}

}  // namespace

/// Reads a string whose quote is at pos_ and pushes it as a node of `kind`.
void JsonReader::read_string(JsonKind kind) {
  const std::size_t quote = pos_++;
  const std::size_t place = document_.text_.size();
  for (;;) {
    const std::size_t run = pos_;
    int c = peek();
    while (c >= 0x20 && c != '"' && c != '\\') {
      ++pos_;
      c = peek();
    }
    document_.text_ += text_.substr(run, pos_ - run);
    if (c == '"') break;
    if (c < 0) fail_at("Unterminated string starting at", quote);
    if (c < 0x20) fail_at("Invalid control character at", pos_);
    read_escape(quote);
  }
  ++pos_;
  push(kind, document_.text_.size() - place, place);
}

/// Reads the escape whose backslash is at pos_. `quote` is where the string began.
void JsonReader::read_escape(std::size_t quote) {
  const std::size_t backslash = pos_++;
  if (peek() < 0) fail_at("Unterminated string starting at", quote);
  if (peek() == 'u') {
    append_utf8(document_.text_, read_unicode_escape());
    return;
  }
  const char c = simple_escape(text_[pos_]);
  if (c == 0) fail_at("Invalid \\escape", backslash);
  document_.text_ += c;
  ++pos_;
}

/// Reads "uXXXX" at pos_, joined with the escape of a low surrogate when one follows.
char32_t JsonReader::read_unicode_escape() {
  const std::size_t start = pos_;
  const std::optional<char32_t> c = hex4(text_.substr(start + 1));
  // CPython wants something behind the digits as well; only a cut text can tell.
  if (!c || start + 5 >= text_.size()) fail_at("Invalid \\uXXXX escape", start);
  pos_ += 5;
  char32_t low = 0;
  if (!is_high_surrogate(*c) || !low_surrogate_follows(low)) return *c;
  pos_ += 6;
  return 0x10000 + ((*c - 0xD800) << 10) + (low - 0xDC00);
}

bool JsonReader::low_surrogate_follows(char32_t& low) const {
  if (!starts_with("\\u")) return false;
  const std::optional<char32_t> c = hex4(text_.substr(pos_ + 2));
  // At the end of a cut text the second escape is the one that CPython reports, read on its own.
  if (!c || !is_low_surrogate(*c) || pos_ + 6 >= text_.size()) return false;
  low = *c;
  return true;
}

}  // namespace jemm

// JSON containers cut into texts.
#include "contract/json_members.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"
#include "contract/json.h"

namespace jemm {
namespace {

[[noreturn]] void fail_form() {
  throw Error::request("JSONDecodeError", "the text has not the form of a JSON container");
}

/// Cuts the text between an outer pair of brackets at commas and colons that stand in no string and
/// no inner bracket.
class Cutter {
 public:
  Cutter(std::string_view text, char open, char close)
      : text_(decode_json_bytes(text)), close_(close) {
    skip_space();
    if (next() != open) fail_form();
  }

  /// Moves to the next piece; false behind the last one.
  bool more() {
    skip_space();
    if (first_ && peek() == close_) return finish();
    if (!first_) {
      const char c = next();
      if (c == close_) return --pos_, finish();
      if (c != ',') fail_form();
    }
    first_ = false;
    return true;
  }

  std::string_view piece() {
    skip_space();
    const std::size_t begin = pos_;
    std::size_t depth = 0;
    for (; pos_ < text_.size(); ++pos_) {
      const char c = text_[pos_];
      if (c == '"') {
        skip_string();
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (depth > 0) {
        if (c == '}' || c == ']') --depth;
      } else if (c == ',' || c == ':' || c == '}' || c == ']') {
        break;
      }
    }
    std::size_t end = pos_;
    while (end > begin && is_space(text_[end - 1])) --end;
    if (end == begin) fail_form();
    return text_.substr(begin, end - begin);
  }

  void expect(char wanted) {
    skip_space();
    if (next() != wanted) fail_form();
  }

 private:
  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

  bool finish() {
    ++pos_;
    skip_space();
    if (pos_ != text_.size()) fail_form();
    return false;
  }

  /// Leaves pos_ on the closing quote.
  void skip_string() {
    for (++pos_; pos_ < text_.size() && text_[pos_] != '"'; ++pos_) {
      if (text_[pos_] == '\\') ++pos_;
    }
    if (pos_ >= text_.size()) fail_form();
  }

  void skip_space() {
    while (pos_ < text_.size() && is_space(text_[pos_])) ++pos_;
  }

  char peek() const { return pos_ < text_.size() ? text_[pos_] : '\0'; }

  char next() {
    if (pos_ >= text_.size()) fail_form();
    return text_[pos_++];
  }

  std::string_view text_;
  std::size_t pos_ = 0;
  char close_;
  bool first_ = true;
};

}  // namespace

std::vector<JsonMember> json_members(std::string_view text,
                                     std::span<const std::string_view> keys) {
  std::vector<JsonMember> members;
  Cutter cutter(text, '{', '}');
  while (cutter.more()) {
    std::string key = json_string_value(cutter.piece());
    cutter.expect(':');
    const std::string_view value = cutter.piece();
    if (!keys.empty() && std::find(keys.begin(), keys.end(), key) == keys.end()) continue;
    members.push_back({std::move(key), value});
  }
  return members;
}

std::vector<std::string_view> json_elements(std::string_view text) {
  std::vector<std::string_view> elements;
  Cutter cutter(text, '[', ']');
  while (cutter.more()) elements.push_back(cutter.piece());
  return elements;
}

std::string json_string_value(std::string_view text) {
  const JsonDocument document = parse_json(text);
  const JsonValue value = document.root();
  if (!value.is_string()) throw Error::request("ValueError", "not a JSON string");
  return std::string(value.text());
}

}  // namespace jemm

// Strings, numbers, brackets, and how deep they go.
#include "tokens/json_walker.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/utf8.h"
#include "tokens/check_utf8.h"

namespace jemm {
namespace {

constexpr std::size_t kMaxDepth = 900;

bool is_blank(char byte) {
  return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

bool is_mark(char byte) {
  return byte == '"' || byte == ',' || byte == ':' || byte == '{' || byte == '}' || byte == '[' ||
         byte == ']';
}

}  // namespace

nlohmann::json parse_small_json(std::string_view text, const std::string& name) {
  JsonWalker walker(text, name);
  const std::string_view value = walker.raw();
  walker.end();
  auto document = nlohmann::json::parse(value, nullptr, false);
  if (document.is_discarded()) jemm::fail(ErrorKind::kInput, "{}: no valid JSON", name);
  return document;
}

JsonWalker::JsonWalker(std::string_view text, std::string name)
    : text_(text), name_(std::move(name)) {
  const TextFault fault = find_text_fault(text);
  if (fault.kind != TextFault::kNone) {
    offset_ = fault.offset;
    fail("valid UTF-8");
  }
}

JsonWalker JsonWalker::of_raw(std::string_view text, std::string name) {
  JsonWalker walker;
  walker.text_ = text;
  walker.name_ = std::move(name);
  return walker;
}

void JsonWalker::fail(std::string_view what) const {
  jemm::fail(ErrorKind::kInput, "{}: expected {} at byte {}", name_, what, offset_);
}

void JsonWalker::blanks() {
  while (offset_ < text_.size() && is_blank(text_[offset_])) ++offset_;
}

char JsonWalker::peek() {
  blanks();
  if (offset_ == text_.size()) fail("a value");
  return text_[offset_];
}

bool JsonWalker::accept(char byte) {
  blanks();
  if (offset_ == text_.size() || text_[offset_] != byte) return false;
  ++offset_;
  return true;
}

void JsonWalker::expect(char byte, const char* what) {
  if (!accept(byte)) fail(what);
}

// Requires that the string's content starts at `offset`.
JsonWalker::StringEnd JsonWalker::find_string_end(std::size_t offset) const {
  bool escapes = false;
  for (; offset < text_.size(); ++offset) {
    const char byte = text_[offset];
    if (byte == '"') return {offset, escapes};
    if (byte == '\\') {
      escapes = true;
      ++offset;
    }
    if (static_cast<unsigned char>(byte) < 0x20) break;
  }
  jemm::fail(ErrorKind::kInput, "{}: a string that starts at byte {} is not closed", name_,
             offset_);
}

std::string_view JsonWalker::string() {
  expect('"', "a string");
  const StringEnd end = find_string_end(offset_);
  if (!end.escapes) {
    const std::string_view body = text_.substr(offset_, end.quote - offset_);
    offset_ = end.quote + 1;
    return body;
  }
  unescaped_.clear();
  while (text_[offset_] != '"') {
    if (text_[offset_] == '\\') {
      unescape();
    } else {
      unescaped_ += text_[offset_++];
    }
  }
  ++offset_;
  return unescaped_;
}

// Reads one escape, or two that form a surrogate pair.
void JsonWalker::unescape() {
  constexpr std::string_view kNames = "\"\\/bfnrt", kValues = "\"\\/\b\f\n\r\t";
  const char kind = text_[offset_ + 1];
  if (const std::size_t found = kNames.find(kind); found != std::string_view::npos) {
    unescaped_ += kValues[found];
    offset_ += 2;
    return;
  }
  if (kind != 'u') fail("a valid escape");
  char32_t c = hex4();
  if (c >= 0xD800 && c < 0xDC00 && text_.substr(offset_, 2) == "\\u") {
    const char32_t low = hex4();
    if (low < 0xDC00 || low > 0xDFFF) fail("the other half of a surrogate pair");
    c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
  }
  if (is_surrogate(c)) fail("no lone surrogate");
  append_utf8(unescaped_, c);
}

// Four digits behind "\u" at the offset.
std::uint32_t JsonWalker::hex4() {
  std::uint32_t value = 0;
  for (std::size_t i = offset_ + 2; i < offset_ + 6; ++i) {
    const char c = i < text_.size() ? text_[i] : '\0';
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) fail("four hexadecimal digits");
    value = value << 4 | static_cast<std::uint32_t>(digit);
  }
  offset_ += 6;
  return value;
}

std::int32_t JsonWalker::id() {
  blanks();
  std::int64_t value = 0;
  const std::size_t start = offset_;
  while (offset_ < text_.size() && text_[offset_] >= '0' && text_[offset_] <= '9') {
    value = value * 10 + (text_[offset_++] - '0');
    if (value > 0x7FFFFFFF) fail("a number below 2^31");
  }
  const bool leading_zero = text_.substr(start, 1) == "0" && offset_ > start + 1;
  const char next = offset_ < text_.size() ? text_[offset_] : '\0';
  if (offset_ == start || leading_zero || next == '.' || next == 'e' || next == 'E') {
    fail("a whole number");
  }
  return static_cast<std::int32_t>(value);
}

std::string_view JsonWalker::raw() {
  peek();
  const std::size_t start = offset_;
  std::size_t depth = 0;
  do {
    const char byte = peek();
    if (byte == '"') {
      ++offset_;
      offset_ = find_string_end(offset_).quote + 1;
    } else if (byte == '{' || byte == '[') {
      if (++depth > kMaxDepth) fail("at most 900 levels");
      ++offset_;
    } else if (byte == '}' || byte == ']') {
      if (depth == 0) fail("a value");
      --depth;
      ++offset_;
    } else if (byte == ',' || byte == ':') {
      if (depth == 0) fail("a value");
      ++offset_;
    } else {
      while (offset_ < text_.size() && !is_blank(text_[offset_]) && !is_mark(text_[offset_])) {
        ++offset_;
      }
    }
  } while (depth > 0);
  return text_.substr(start, offset_ - start);
}

void JsonWalker::end() {
  blanks();
  if (offset_ != text_.size()) fail("the end");
}

}  // namespace jemm

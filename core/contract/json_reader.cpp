// The grammar of CPython's C scanner (Modules/_json.c of 3.12), without recursion.
#include "contract/json_reader.h"

#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"
#include "contract/json_duplicates.h"

namespace jemm {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_digit(int c) {
  return c >= '0' && c <= '9';
}

/// The value of a JSON float, correctly rounded; what is out of range becomes 0 or infinity.
double float_value(std::string_view text) {
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc::result_out_of_range) return value;
  // Out of range either way: the sign of the decimal exponent of the first digit tells which.
  const bool negative = text.front() == '-';
  const std::size_t mark = std::min(text.find_first_of("eE"), text.size());
  const std::string_view digits = text.substr(0, mark);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::size_t lead = digits.find_first_of("123456789");
  long long exponent = static_cast<long long>(point) - static_cast<long long>(lead);
  if (mark < text.size()) {
    std::string_view power = text.substr(mark + 1);
    if (power.front() == '+') power.remove_prefix(1);
    long long given = 0;
    const auto read = std::from_chars(power.data(), power.data() + power.size(), given);
    // Beyond any text's length, so that the digits before it cannot outweigh it.
    constexpr long long kHuge = 1'000'000'000'000;
    if (read.ec != std::errc{} || given > kHuge || given < -kHuge) {
      given = power.front() == '-' ? -kHuge : kHuge;
    }
    exponent += given;
  }
  const double magnitude = exponent > 0 ? kInfinity : 0.0;
  return negative ? -magnitude : magnitude;
}

}  // namespace

JsonDocument parse_json(std::string_view text) {
  return JsonReader(text).read();
}

JsonDocument JsonReader::read() {
  if (text_.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw Error::request("ValueError", "JSON text of 4 GiB or more");
  }
  skip_space();
  read_value();
  while (!open_.empty()) {
    if (document_.nodes_[open_.back()].kind == JsonKind::kList) {
      continue_list();
    } else {
      continue_dict();
    }
  }
  skip_space();
  if (pos_ != text_.size()) fail_at("Extra data", pos_);
  return std::move(document_);
}

void JsonReader::read_value() {
  switch (peek()) {
    case '"':
      return read_string(JsonKind::kString);
    case '{':
      return open(JsonKind::kDict);
    case '[':
      return open(JsonKind::kList);
    case 'n':
      if (read_word("null", JsonKind::kNull)) return;
      break;
    case 't':
      if (read_word("true", JsonKind::kTrue)) return;
      break;
    case 'f':
      if (read_word("false", JsonKind::kFalse)) return;
      break;
    case 'N':
      if (read_float_word("NaN", std::numeric_limits<double>::quiet_NaN())) return;
      break;
    case 'I':
      if (read_float_word("Infinity", kInfinity)) return;
      break;
    case '-':
      if (read_float_word("-Infinity", -kInfinity)) return;
      break;
    default:
      break;
  }
  read_number();
}

/// Behind an element, or behind the bracket: true when the container has been closed, false when
/// another entry must follow at pos_.
bool JsonReader::at_close(char bracket) {
  skip_space();
  if (peek() == bracket) {
    ++pos_;
    close();
    return true;
  }
  if (document_.nodes_[open_.back()].size > 0) {
    if (peek() != ',') fail_at("Expecting ',' delimiter", pos_);
    ++pos_;
    skip_space();
  }
  ++document_.nodes_[open_.back()].size;
  return false;
}

void JsonReader::continue_list() {
  if (!at_close(']')) read_value();
}

void JsonReader::continue_dict() {
  if (at_close('}')) return;
  if (peek() != '"') fail_at("Expecting property name enclosed in double quotes", pos_);
  read_string(JsonKind::kKey);
  skip_space();
  if (peek() != ':') fail_at("Expecting ':' delimiter", pos_);
  ++pos_;
  skip_space();
  read_value();
}

void JsonReader::open(JsonKind kind) {
  if (open_.size() == kMaxJsonDepth) {
    throw Error::request("ValueError",
                         fmt::format("JSON is nested more than {} levels deep", kMaxJsonDepth));
  }
  ++pos_;
  open_.push_back(push(kind));
}

void JsonReader::close() {
  const std::uint32_t index = open_.back();
  open_.pop_back();
  document_.nodes_[index].set(0, static_cast<std::uint32_t>(document_.nodes_.size()));
  if (document_.nodes_[index].kind == JsonKind::kDict) {
    merge_duplicate_keys(document_.nodes_, index, document_.text_);
  }
}

bool JsonReader::read_word(std::string_view word, JsonKind kind) {
  if (!starts_with(word)) return false;
  pos_ += word.size();
  push(kind);
  return true;
}

bool JsonReader::read_float_word(std::string_view word, double value) {
  if (!read_word(word, JsonKind::kFloat)) return false;
  document_.nodes_.back().data = std::bit_cast<std::uint64_t>(value);
  return true;
}

void JsonReader::read_number() {
  const std::size_t start = pos_;
  const auto skip_digits = [this] {
    while (is_digit(peek())) ++pos_;
  };
  if (peek() == '-') ++pos_;
  if (!is_digit(peek())) {
    pos_ = start;
    fail_at("Expecting value", start);
  }
  if (text_[pos_] == '0') {
    ++pos_;
  } else {
    skip_digits();
  }
  bool is_float = false;
  // A fraction or exponent without digits is not part of the number.
  if (const std::size_t mark = pos_; peek() == '.') {
    ++pos_;
    skip_digits();
    if (pos_ == mark + 1)
      pos_ = mark;
    else
      is_float = true;
  }
  if (const std::size_t mark = pos_; peek() == 'e' || peek() == 'E') {
    ++pos_;
    if (peek() == '+' || peek() == '-') ++pos_;
    const std::size_t digits = pos_;
    skip_digits();
    if (pos_ == digits)
      pos_ = mark;
    else
      is_float = true;
  }
  const std::string_view number = text_.substr(start, pos_ - start);
  if (!is_float) return push_integer(number);
  push(JsonKind::kFloat);
  document_.nodes_.back().data = std::bit_cast<std::uint64_t>(float_value(number));
}

void JsonReader::push_integer(std::string_view digits) {
  if (digits == "-0") digits.remove_prefix(1);
  const std::size_t count = digits.size() - (digits.front() == '-' ? 1 : 0);
  if (count > kMaxIntegerDigits) {
    throw Error::request(
        "ValueError",
        fmt::format("Exceeds the limit ({} digits) for integer string conversion: value has {} "
                    "digits; use sys.set_int_max_str_digits() to increase the limit",
                    kMaxIntegerDigits, count));
  }
  push(JsonKind::kInt, digits.size(), document_.text_.size());
  document_.text_ += digits;
}

void JsonReader::skip_space() {
  while (pos_ < text_.size()) {
    const char c = text_[pos_];
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return;
    ++pos_;
  }
}

std::uint32_t JsonReader::push(JsonKind kind, std::size_t size, std::size_t place) {
  const auto index = static_cast<std::uint32_t>(document_.nodes_.size());
  JsonNode& node = document_.nodes_.emplace_back();
  node.kind = kind;
  node.size = static_cast<std::uint32_t>(size);
  node.set(static_cast<std::uint32_t>(place), index + 1);
  return index;
}

void JsonReader::fail_at(std::string_view message, std::size_t offset) const {
  const std::string_view before = text_.substr(0, offset);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  std::size_t line = 1;
  for (const char c : before) line += c == '\n';
  throw Error::request(
      "JSONDecodeError",
      fmt::format("{}: line {} column {} (char {})", message, line,
                  count_code_points(before.substr(line_start)) + 1, count_code_points(before)));
}

}  // namespace jemm

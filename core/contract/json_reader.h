// The JSON reader's state; used by json_reader.cpp and json_string.cpp only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "contract/json.h"

namespace jemm {

/// Reads one text into one document, with a stack of its own for open lists and dicts.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}
  JsonDocument read();

 private:
  // json_reader.cpp
  void read_value();
  void continue_list();
  void continue_dict();
  bool at_close(char close);
  void open(JsonKind kind);
  void close();
  bool read_word(std::string_view word, JsonKind kind);
  bool read_float_word(std::string_view word, double value);
  void read_number();
  void push_integer(std::string_view digits);
  void skip_space();

  // json_string.cpp
  void read_string(JsonKind kind);
  void read_escape(std::size_t quote);
  char32_t read_unicode_escape();
  bool low_surrogate_follows(char32_t& low) const;

  bool starts_with(std::string_view word) const { return text_.substr(pos_).starts_with(word); }
  int peek() const { return pos_ < text_.size() ? static_cast<unsigned char>(text_[pos_]) : -1; }
  std::uint32_t push(JsonKind kind, std::size_t size = 0, std::size_t place = 0);
  /// Throws JSONDecodeError with CPython's line, column and character of byte `offset`.
  [[noreturn]] void fail_at(std::string_view message, std::size_t offset) const;

  std::string_view text_;
  std::size_t pos_ = 0;
  JsonDocument document_;
  std::vector<std::uint32_t> open_;  // nodes of the lists and dicts not yet closed
};

}  // namespace jemm

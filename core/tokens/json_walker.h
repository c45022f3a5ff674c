// Walks a large JSON text value by value. Small values go on to nlohmann/json.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace jemm {

/// Parses a small document whole, as nlohmann/json does. Throws Error(kInput) that begins with
/// `name` for anything but JSON in UTF-8 of at most 900 levels.
nlohmann::json parse_small_json(std::string_view text, const std::string& name);

/// Walks valid UTF-8. Every error is Error(kInput): the name, the byte offset, what was expected.
class JsonWalker {
 public:
  /// `text` outlives the walker. Throws when it is not valid UTF-8.
  JsonWalker(std::string_view text, std::string name);

  /// A walker of what raw() gave, whose UTF-8 is known to be valid.
  static JsonWalker of_raw(std::string_view text, std::string name);

  /// The first character of the next value: one of `{`, `[`, `"`, or of a number or a word.
  char peek();

  /// Walks an object: `member(key)` must read the value. The key is gone when it returns.
  template <typename Member>
  void object(Member member) {
    expect('{', "an object");
    if (accept('}')) return;
    do {
      const std::string key(string());
      expect(':', "':'");
      member(std::string_view(key));
    } while (accept(','));
    expect('}', "',' or '}'");
  }

  /// Walks an array: `item()` must read the value.
  template <typename Item>
  void array(Item item) {
    expect('[', "an array");
    if (accept(']')) return;
    do {
      item();
    } while (accept(','));
    expect(']', "',' or ']'");
  }

  /// A string; the view holds until the next call of string() or object().
  std::string_view string();

  /// A whole number from 0 to 2^31 - 1.
  std::int32_t id();

  /// Skips a value of at most 900 levels and returns its text. Checks brackets and strings only.
  std::string_view raw();

  /// Throws unless only blanks are left.
  void end();

  [[noreturn]] void fail(std::string_view what) const;

 private:
  JsonWalker() = default;
  void blanks();
  bool accept(char byte);
  void expect(char byte, const char* what);
  void unescape();
  std::uint32_t hex4();
  struct StringEnd {
    std::size_t quote;  // offset of the closing quote
    bool escapes;       // the string holds a backslash
  };
  StringEnd find_string_end(std::size_t offset) const;

  std::string_view text_;
  std::string name_;
  std::string unescaped_;
  std::size_t offset_ = 0;
};

}  // namespace jemm

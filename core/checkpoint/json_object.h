// Reads members of an untrusted JSON object; every refusal names file, key and what was found.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace jemm {

/// Text in quotes for a message: at most 120 bytes of it, control characters escaped.
std::string in_quotes(std::string_view text);
/// Names for a message: up to 1000 in full, then how many more.
std::string name_list(const std::vector<std::string>& names);
/// What nlohmann's messages say behind their own prefix.
std::string json_reason(std::string_view message);

/// Refuses what nlohmann's reader would take for the text's start or end: a byte order mark, a NUL.
void check_json_bytes(std::string_view text, const std::string& file);

/// The text's object. Of a key given twice the last value counts, as in Python. Throws Error(kInput)
/// for invalid JSON, another value, more than 16 MiB or more than 64 nested containers.
nlohmann::json parse_json_object(std::string_view text, const std::string& file);

/// An inclusive range of allowed integers.
struct IntRange {
  std::int64_t low;
  std::int64_t high;
};

/// A view of one object; `value` must outlive it.
class JsonObject {
 public:
  /// `where` begins messages: "DIR/config.json: text_config".
  JsonObject(const nlohmann::json& value, std::string where);

  const nlohmann::json& value() const { return *value_; }
  const std::string& where() const { return where_; }
  const nlohmann::json* find(std::string_view key) const;           ///< null when absent
  const nlohmann::json* find_not_null(std::string_view key) const;  ///< null when absent or null

  void require(std::string_view key) const;  ///< throws when the key is absent

  /// The value under `key`, or `fallback` when it is absent. Throw for another type or range.
  std::int64_t integer(std::string_view key, std::int64_t fallback, IntRange range) const;
  double number(std::string_view key, double fallback) const;
  double positive_number(std::string_view key, double fallback) const;  ///< and finite
  bool boolean(std::string_view key, bool fallback) const;
  std::string string(std::string_view key, std::string_view fallback) const;
  /// The object under `key`, or an empty one when it is absent or null.
  JsonObject object(std::string_view key) const;

  /// Throws Error(kInput): "WHERE: KEY WHY", an unusual key in quotes.
  [[noreturn]] void refuse(std::string_view key, std::string_view why) const;

 private:
  const nlohmann::json* value_;
  std::string where_;
};

/// null, false, 0, "" or an empty container: what stands for "not used".
bool is_blank(const nlohmann::json& value);

/// A value for a message, cut when long.
std::string json_text(const nlohmann::json& value);

}  // namespace jemm

// Typed reading of members, and messages that quote untrusted text safely.
#include "checkpoint/json_object.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace jemm {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
constexpr int kMaxDepth = 64;

}  // namespace

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMaxShown = 120;
  std::string out = "\"";
  for (const char byte : text.substr(0, kMaxShown)) {
    const auto code = static_cast<unsigned char>(byte);
    if (code < 0x20 || code == 0x7F) {
      out += fmt::format("\\x{:02x}", code);
    } else {
      out += byte;
    }
  }
  if (text.size() > kMaxShown) {
    // Not in the middle of a character: drop the cut one's bytes.
    while ((static_cast<unsigned char>(text[kMaxShown]) & 0xC0) == 0x80 && out.size() > 1) {
      const auto last = static_cast<unsigned char>(out.back());
      out.pop_back();
      if ((last & 0xC0) != 0x80) break;
    }
    out += "...";
  }
  return out + "\"";
}

std::string name_list(const std::vector<std::string>& names) {
  constexpr std::size_t kMaxShown = 1000;
  const auto shown = std::min(names.size(), kMaxShown);
  std::string out;
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) out += ", ";
    out += in_quotes(names[i]);
  }
  if (shown < names.size()) out += fmt::format(" and {} more", names.size() - shown);
  return out;
}

std::string json_reason(std::string_view message) {
  // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ..."
  const auto bracket = message.find("] ");
  return std::string(bracket == std::string_view::npos ? message : message.substr(bracket + 2));
}

bool is_blank(const nlohmann::json& value) {
  if (value.is_string()) return value.get_ref<const std::string&>().empty();
  return value.empty() || value == false || value == 0;
}

std::string json_text(const nlohmann::json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  if (value.is_string()) return in_quotes(value.get_ref<const std::string&>());
  return value.dump();
}

void check_json_bytes(std::string_view text, const std::string& file) {
  if (text.starts_with("\xEF\xBB\xBF")) {
    fail(ErrorKind::kInput, "{}: JSON may not begin with a byte order mark", file);
  }
  if (const auto at = text.find('\0'); at != std::string_view::npos) {
    fail(ErrorKind::kInput, "{}: a NUL byte at offset {} of the JSON", file, at);
  }
}

nlohmann::json parse_json_object(std::string_view text, const std::string& file) {
  if (text.size() > kMaxBytes) {
    fail(ErrorKind::kInput, "{}: {} bytes are too many, the limit is {}", file, text.size(),
         kMaxBytes);
  }
  check_json_bytes(text, file);
  const auto check_depth = [&file](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > kMaxDepth) fail(ErrorKind::kInput, "{}: nested too deeply", file);
    return true;
  };
  nlohmann::json value;
  try {
    value = nlohmann::json::parse(text, check_depth);
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::kInput, "{}: {}", file, json_reason(error.what()));
  }
  if (!value.is_object()) fail(ErrorKind::kInput, "{} must hold a JSON object", file);
  return value;
}

JsonObject::JsonObject(const nlohmann::json& value, std::string where)
    : value_(&value), where_(std::move(where)) {
  if (!value.is_object()) {
    fail(ErrorKind::kInput, "{} must be an object, found {}", where_, json_text(value));
  }
}

void JsonObject::refuse(std::string_view key, std::string_view why) const {
  const bool plain = key.size() < 64 && std::all_of(key.begin(), key.end(), [](char c) {
                       return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                              (c >= '0' && c <= '9');
                     });
  fail(ErrorKind::kInput, "{}: {} {}", where_, plain ? std::string(key) : in_quotes(key), why);
}

const nlohmann::json* JsonObject::find(std::string_view key) const {
  const auto at = value_->find(key);
  return at == value_->end() ? nullptr : &*at;
}

const nlohmann::json* JsonObject::find_not_null(std::string_view key) const {
  const nlohmann::json* found = find(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

void JsonObject::require(std::string_view key) const {
  if (find(key) == nullptr) refuse(key, "is missing");
}

std::int64_t JsonObject::integer(std::string_view key, std::int64_t fallback,
                                 IntRange range) const {
  const nlohmann::json* found = find(key);
  if (found == nullptr) return fallback;
  const bool fits = found->is_number_integer() &&
                    !(found->is_number_unsigned() &&
                      found->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) &&
                    found->get<std::int64_t>() >= range.low &&
                    found->get<std::int64_t>() <= range.high;
  if (!fits) {
    refuse(key, fmt::format("must be an integer from {} to {}, found {}", range.low, range.high,
                            json_text(*found)));
  }
  return found->get<std::int64_t>();
}

double JsonObject::number(std::string_view key, double fallback) const {
  const nlohmann::json* found = find(key);
  if (found == nullptr) return fallback;
  if (!found->is_number()) refuse(key, "must be a number, found " + json_text(*found));
  return found->get<double>();
}

double JsonObject::positive_number(std::string_view key, double fallback) const {
  const double value = number(key, fallback);
  if (!(value > 0) || !std::isfinite(value)) {
    refuse(key, fmt::format("must be positive and finite, found {}", value));
  }
  return value;
}

bool JsonObject::boolean(std::string_view key, bool fallback) const {
  const nlohmann::json* found = find(key);
  if (found == nullptr) return fallback;
  if (!found->is_boolean()) refuse(key, "must be true or false, found " + json_text(*found));
  return found->get<bool>();
}

std::string JsonObject::string(std::string_view key, std::string_view fallback) const {
  const nlohmann::json* found = find(key);
  if (found == nullptr) return std::string(fallback);
  if (!found->is_string()) refuse(key, "must be a string, found " + json_text(*found));
  return found->get<std::string>();
}

JsonObject JsonObject::object(std::string_view key) const {
  static const nlohmann::json kEmpty = nlohmann::json::object();
  const nlohmann::json* found = find_not_null(key);
  return {found == nullptr ? kEmpty : *found, fmt::format("{}: {}", where_, key)};
}

}  // namespace jemm

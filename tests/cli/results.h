// Helpers of the command tests: request lines to send, result lines to compare.
#pragma once

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace jemm::test {

using Json = nlohmann::ordered_json;

inline std::vector<Json> parse_lines(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

/// A result without what may differ between two runs.
inline Json without_times(Json line) {
  if (line.contains("usage")) line["usage"].erase("latency_ms");
  if (line.contains("jemm")) line["jemm"].erase("timings_ms");
  return line;
}

inline std::vector<Json> results(const std::string& text) {
  std::vector<Json> lines = parse_lines(text);
  for (Json& line : lines) line = without_times(std::move(line));
  return lines;
}

/// A small valid body whose text depends on `n`.
inline std::string body(int n) {
  return R"({"state":"- search is down\n- mailer is healthy\n- case )" + std::to_string(n) +
         R"(","questions":{"down":{"criteria":{"search":"search","mailer":"mailer"},)"
         R"("instructions":"Which service is down?"}}})";
}

inline std::string bodies(int count) {
  std::string text;
  for (int n = 0; n < count; ++n) text += body(n) + "\n";
  return text;
}

inline std::string from_base64(const std::string& base64) {
  static const std::string kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0;
  int n_bits = 0;
  for (const char c : base64) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<unsigned>(kAlphabet.find(c));
    if ((n_bits += 6) >= 8) bytes += static_cast<char>(bits >> (n_bits -= 8) & 0xFF);
  }
  return bytes;
}

}  // namespace jemm::test

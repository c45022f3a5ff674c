#include "judge/answer_lines.h"

#include <array>
#include <vector>

#include "base/error.h"
#include "contract/json_members.h"
#include "judge/case_reader.h"
#include "judge/read_json.h"

namespace jemm {
namespace {

std::string text_of(const JsonMember& member) {
  return member.value.starts_with('"') ? json_string_value(member.value) : "";
}

ErrorRecord read_error(std::string_view json) {
  constexpr std::array<std::string_view, 2> kKeys = {"error", "detail"};
  ErrorRecord error{.http = kRefusedHttp, .type = "", .detail = ""};
  for (const JsonMember& member : json_members(json, kKeys)) {
    (member.key == "error" ? error.type : error.detail) = text_of(member);
  }
  return error;
}

std::string read_request_sha256(std::string_view json) {
  constexpr std::array<std::string_view, 1> kKey = {"request_sha256"};
  std::string hash;
  for (const JsonMember& member : json_members(json, kKey)) hash = text_of(member);
  return hash;
}

AnswerLine parse(std::string_view line, const std::string& where) {
  constexpr std::array<std::string_view, 2> kKeys = {"error", "jemm"};
  AnswerLine result;
  for (const JsonMember& member : json_members(line, kKeys)) {
    if (member.key == "error") {
      result.error = read_error(member.value);
    } else {
      result.request_sha256 = read_request_sha256(member.value);
    }
  }
  if (!result.error) result.response = read_response(line, where);
  return result;
}

}  // namespace

AnswerLine read_answer_line(std::string_view line, const std::string& where) {
  return read_json(where, [&] { return parse(line, where); });
}

std::string answer_key_of(std::string_view line, const std::string& where) {
  constexpr std::array<std::string_view, 1> kId = {"id"};
  std::optional<std::string> key;
  read_json(where, [&] {
    for (const JsonMember& member : json_members(line, kId)) {
      key = member.value.starts_with('"') ? answer_key(json_string_value(member.value))
                                          : std::string(member.value);
    }
  });
  if (!key) fail(ErrorKind::kInput, "{} has no id", where);
  return *key;
}

std::string answer_key(std::string_view id) {
  return '"' + std::string(id);
}

std::string shown_answer_id(std::string_view key) {
  return std::string(key.substr(key.starts_with('"') ? 1 : 0));
}

IndexedLines open_answer_lines(const std::string& path, const IndexedLines::KeyOf& key_of) {
  IndexedLines lines(path, key_of);
  if (!lines.duplicates().empty()) {
    fail(ErrorKind::kInput, "{}: the id {} stands for more than one line", path,
         shown_answer_id(lines.duplicates().front()));
  }
  return lines;
}

}  // namespace jemm

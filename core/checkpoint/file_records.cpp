// Reads and writes the arrays of files in manifests.
#include "checkpoint/file_records.h"

#include <algorithm>

#include "base/error.h"

namespace jemm {
namespace {

constexpr IntRange kCounts{0, INT64_MAX};
constexpr IntRange kTimes{INT64_MIN, INT64_MAX};

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string_view without_role(std::string_view name) {
  for (const std::string_view role : {"base/", "adapter/"}) {
    if (name.starts_with(role)) return name.substr(role.size());
  }
  return name;
}

FileRecord read_record(const JsonObject& object, bool may_lack_hash) {
  for (const char* key : {"name", "size", "mtime_ns", "sha256"}) object.require(key);
  FileRecord record;
  record.name = object.string("name", "");
  if (!is_plain_name(without_role(record.name))) {
    object.refuse("name", in_quotes(record.name) + " is no file of the directory");
  }
  record.size = static_cast<std::uint64_t>(object.integer("size", 0, kCounts));
  record.mtime_ns = object.integer("mtime_ns", 0, kTimes);
  record.sha256 = object.string("sha256", "");
  if (!is_sha256(record.sha256) && !(may_lack_hash && record.sha256.empty())) {
    object.refuse("sha256", in_quotes(record.sha256) + " is no SHA-256");
  }
  return record;
}

}  // namespace

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         std::none_of(name.begin(), name.end(), [](char c) {
           return c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
         });
}

nlohmann::ordered_json records_json(const std::vector<FileRecord>& records) {
  auto list = nlohmann::ordered_json::array();
  for (const FileRecord& record : records) {
    list.push_back({{"name", record.name},
                    {"size", record.size},
                    {"mtime_ns", record.mtime_ns},
                    {"sha256", record.sha256}});
  }
  return list;
}

std::vector<FileRecord> read_records(const JsonObject& root, std::string_view key,
                                     bool may_lack_hash) {
  root.require(key);
  const nlohmann::json& list = *root.find(key);
  if (!list.is_array()) root.refuse(key, "must be an array, found " + json_text(list));
  std::vector<FileRecord> records;
  std::vector<std::string> names;
  for (const nlohmann::json& item : list) {
    const JsonObject object(item, fmt::format("{}: {}", root.where(), key));
    records.push_back(read_record(object, may_lack_hash));
    names.push_back(records.back().name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) root.refuse(key, "lists " + in_quotes(*twice) + " twice");
  return records;
}

const FileRecord* find_record(const std::vector<FileRecord>& records, std::string_view name) {
  const auto at = std::find_if(records.begin(), records.end(),
                               [name](const FileRecord& record) { return record.name == name; });
  return at == records.end() ? nullptr : &*at;
}

}  // namespace jemm

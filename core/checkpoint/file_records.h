// Lists of files with their hashes as JSON, and names that stay in their directory.
#pragma once

#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "checkpoint/json_object.h"
#include "checkpoint/manifest.h"

namespace jemm {

/// True for the name of a file of the directory itself: no path, no ".", "..", no control byte.
bool is_plain_name(std::string_view name);

nlohmann::ordered_json records_json(const std::vector<FileRecord>& records);
/// Reads the array under `key`. Names must be plain behind an optional "base/" or "adapter/", and
/// each given once; hashes must be there unless `may_lack_hash`.
std::vector<FileRecord> read_records(const JsonObject& root, std::string_view key,
                                     bool may_lack_hash);

const FileRecord* find_record(const std::vector<FileRecord>& records, std::string_view name);

}  // namespace jemm

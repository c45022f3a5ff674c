// Sizes, times and hashes of an export's files against its manifest.
#include "checkpoint/export_files.h"

#include <algorithm>
#include <mutex>
#include <thread>

#include "base/blocks.h"
#include "base/error.h"
#include "base/sha256.h"
#include "checkpoint/json_object.h"

namespace jemm {
namespace {

namespace fs = std::filesystem;

bool has_file(const fs::path& directory, const char* name) {
  std::error_code ignored;
  return fs::is_regular_file(directory / name, ignored);
}

ExportManifest read_manifest(const fs::path& directory) {
  if (!is_export(directory)) {
    if (is_unfinished_export(directory)) {
      fail(ErrorKind::kInput, "{} is an unfinished export; the same jemm export finishes it",
           directory.string());
    }
    fail(ErrorKind::kInput, "{} is no export: it has no {}", directory.string(), kManifestFile);
  }
  const fs::path path = directory / kManifestFile;
  return parse_manifest(map_file(path).text(), path.string());
}

}  // namespace

bool is_export(const fs::path& directory) {
  return has_file(directory, kManifestFile);
}

bool is_unfinished_export(const fs::path& directory) {
  return !is_export(directory) && has_file(directory, kJournalFile);
}

ExportFiles::ExportFiles(const fs::path& directory)
    : directory_(directory), manifest_(read_manifest(directory)) {
  check_sizes();
}

void ExportFiles::check_sizes() const {
  std::string missing;
  std::string resized;
  for (const FileRecord& record : manifest_.outputs) {
    std::error_code error;
    const auto size = fs::file_size(directory_ / record.name, error);
    if (error) {
      missing += (missing.empty() ? "" : ", ") + in_quotes(record.name);
    } else if (size != record.size) {
      resized += fmt::format("{}{} has {} bytes, not {}", resized.empty() ? "" : ", ",
                             in_quotes(record.name), size, record.size);
    }
  }
  if (!missing.empty()) missing = "files are missing: " + missing;
  if (!missing.empty() && !resized.empty()) missing += "; ";
  if (missing.empty() && resized.empty()) return;
  fail(ErrorKind::kInput, "{} is not as it was exported: {}{}", name(), missing, resized);
}

bool ExportFiles::contains(std::string_view file) const {
  return manifest_.find_output(file) != nullptr;
}

Blob ExportFiles::open(std::string_view file) const {
  const FileRecord* record = manifest_.find_output(file);
  if (record == nullptr) {
    fail(ErrorKind::kInput, "{}: the manifest lists no file {}", name(), in_quotes(file));
  }
  Blob blob = map_file(directory_ / file);
  if (record->size <= kSmallFile && sha256_hex(blob.bytes) != record->sha256) {
    fail(ErrorKind::kInput, "{} is not as it was exported: its SHA-256 differs from {}", path(file),
         kManifestFile);
  }
  return blob;
}

void ExportFiles::verify_small() const {
  verify([](const FileRecord& record) { return record.size <= kSmallFile; });
}

void ExportFiles::verify_large(Trust trust) const {
  verify([&](const FileRecord& record) {
    return record.size > kSmallFile &&
           (trust == Trust::kHash ||
            BlockFile(directory_ / record.name).mtime_ns() != record.mtime_ns);
  });
}

void ExportFiles::verify(const std::function<bool(const FileRecord&)>& is_due) const {
  std::mutex mutex;
  std::vector<std::string> altered;
  constexpr std::size_t kMostFiles = 8;  // at a time: each is read by two blocks
  const std::size_t n_threads =
      std::min<std::size_t>(std::thread::hardware_concurrency(), kMostFiles);
  in_threads(manifest_.outputs.size(), n_threads, [&](std::size_t i) {
    const FileRecord& record = manifest_.outputs[i];
    if (!is_due(record) || sha256_of_file(directory_ / record.name) == record.sha256) return;
    const std::lock_guard lock(mutex);
    altered.push_back(record.name);
  });
  if (altered.empty()) return;
  fail(ErrorKind::kInput, "{} is not as it was exported: the SHA-256 of {} differs from {}", name(),
       name_list(altered), kManifestFile);
}

}  // namespace jemm

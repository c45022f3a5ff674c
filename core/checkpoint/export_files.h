// The files of an exported directory, each checked against the manifest. Knows no weights.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "checkpoint/manifest.h"

namespace jemm {

/// Holds what the manifest lists and nothing else, base and adapter files side by side.
class ExportFiles : public FileSource {
 public:
  /// Throws Error(kInput) for a directory without a finished manifest, and one that lists what is
  /// missing or of another size.
  explicit ExportFiles(const std::filesystem::path& directory);

  const ExportManifest& manifest() const { return manifest_; }

  std::string name() const override { return directory_.string(); }
  bool contains(std::string_view file) const override;
  /// A file of at most kSmallFile bytes is read and its hash compared: Error(kInput).
  Blob open(std::string_view file) const override;

  static constexpr std::uint64_t kSmallFile = std::uint64_t{64} << 20;

  /// Checks the files of at most kSmallFile bytes, or the others, several at a time, each read ahead
  /// while it is hashed. Throws Error(kInput) that lists those that were altered. A large file whose
  /// time differs is hashed in any case.
  void verify_small() const;
  void verify_large(Trust trust) const;

 private:
  void check_sizes() const;
  void verify(const std::function<bool(const FileRecord&)>& is_due) const;

  std::filesystem::path directory_;
  ExportManifest manifest_;
};

/// What a directory is, by the file names that only an export has.
bool is_export(const std::filesystem::path& directory);             ///< finished
bool is_unfinished_export(const std::filesystem::path& directory);  ///< begun and not finished

}  // namespace jemm

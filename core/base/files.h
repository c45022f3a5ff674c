// Named read-only byte blobs, from a directory or linked into the program. Knows no formats.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace jemm {

/// Bytes that stay valid while any copy of the blob lives (a mapping, a string, or static data).
struct Blob {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  ///< empty for static data

  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

/// The files of one checkpoint directory, wherever they are kept.
class FileSource {
 public:
  virtual ~FileSource() = default;
  /// For messages: a path, or the name of an embedded directory.
  virtual std::string name() const = 0;
  /// For messages: the path of one of the files.
  std::string path(std::string_view file) const { return name() + '/' + std::string(file); }
  virtual bool contains(std::string_view file) const = 0;
  /// Throws Error(kIo), naming the file, when it is absent or unreadable.
  virtual Blob open(std::string_view file) const = 0;
};

/// Files below `path`, memory-mapped. Throws Error(kIo) when `path` is no directory.
std::shared_ptr<const FileSource> open_directory(const std::filesystem::path& path);

/// Maps one regular file. Throws Error(kIo), naming it, when that is impossible.
Blob map_file(const std::filesystem::path& path);

}  // namespace jemm

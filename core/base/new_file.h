// Files that appear whole or not at all: written beside their place, then renamed. Knows no
// formats.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace jemm {

/// Throws Error(kUsage), naming the path, when something is there that no file may take the place
/// of: a directory, a device, a pipe, a symbolic link.
void require_replaceable(const std::filesystem::path& path);

/// A file under construction at PATH.partial, removed again unless it is finished.
class NewFile {
 public:
  /// Throws as require_replaceable, and Error(kIo) naming the file, as do the other members.
  explicit NewFile(const std::filesystem::path& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  /// Puts the content on the disk and the file in its place, over one that is there.
  void finish();

 private:
  [[noreturn]] void complain() const;

  std::filesystem::path path_;
  std::filesystem::path partial_;
  int fd_;
};

/// Writes all that the file `from` holds, a block at a time.
void append_file(const std::filesystem::path& from, NewFile& to);

/// Writes a whole file.
void write_new_file(const std::filesystem::path& path, std::string_view text);

/// Makes `to` another name of the file `from` (of what it points to), or where that fails a copy of
/// it, in place of one that is there. Returns whether it is a link. Throws as NewFile.
bool link_or_copy(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace jemm

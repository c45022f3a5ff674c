// Writing, syncing, renaming, linking.
#include "base/new_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/blocks.h"
#include "base/error.h"

namespace jemm {
namespace {

namespace fs = std::filesystem;

fs::path partial_path(const fs::path& path) {
  return fs::path(path) += ".partial";
}

/// So that the names in a directory survive a crash too. File systems that cannot do it are let be.
void sync_directory(const fs::path& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

}  // namespace

void require_replaceable(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::symlink_status(path, ignored);
  if (!fs::exists(status) || fs::is_regular_file(status)) return;
  fail(ErrorKind::kUsage, "{} is no regular file, so it is not replaced", path.string());
}

NewFile::NewFile(const fs::path& path)
    : path_((require_replaceable(path), path)),
      partial_(partial_path(path)),
      fd_(::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666)) {
  if (fd_ < 0) complain();
}

NewFile::~NewFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(partial_.c_str());
}

void NewFile::complain() const {
  fail(ErrorKind::kIo, "cannot write {}: {}", partial_.string(), std::strerror(errno));
}

void NewFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    } else if (errno != EINTR) {
      complain();
    }
  }
}

void NewFile::write(std::string_view text) {
  write(std::as_bytes(std::span(text)));
}

void NewFile::finish() {
  if (::fsync(fd_) != 0 || ::rename(partial_.c_str(), path_.c_str()) != 0) complain();
  if (::close(std::exchange(fd_, -1)) != 0) complain();
  sync_directory(path_.parent_path());
}

void append_file(const fs::path& from, NewFile& to) {
  const BlockFile source(from);
  const std::vector<FileRange> ranges = block_ranges(0, source.size());
  for_each_range(source, ranges,
                 [&to](std::size_t, std::span<const std::byte> bytes) { to.write(bytes); });
}

void write_new_file(const fs::path& path, std::string_view text) {
  NewFile file(path);
  file.write(text);
  file.finish();
}

bool link_or_copy(const fs::path& from, const fs::path& to) {
  // Downloads may be symbolic links to a store of contents; what they point to is linked.
  require_replaceable(to);
  const fs::path partial = partial_path(to);
  ::unlink(partial.c_str());
  if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, partial.c_str(), AT_SYMLINK_FOLLOW) == 0) {
    const int status = ::rename(partial.c_str(), to.c_str());
    const int reason = errno;
    ::unlink(partial.c_str());  // still there when `to` was this file already
    if (status == 0) return true;
    fail(ErrorKind::kIo, "cannot write {}: {}", to.string(), std::strerror(reason));
  }
  NewFile copy(to);
  append_file(from, copy);
  copy.finish();
  return false;
}

}  // namespace jemm

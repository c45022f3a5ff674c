// Files of a directory, memory-mapped.
#include "base/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace jemm {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

class DirectorySource : public FileSource {
 public:
  explicit DirectorySource(std::filesystem::path path) : path_(std::move(path)) {}
  std::string name() const override { return path_.string(); }
  bool contains(std::string_view file) const override {
    std::error_code ignored;
    return std::filesystem::is_regular_file(path_ / file, ignored);
  }
  Blob open(std::string_view file) const override { return map_file(path_ / file); }

 private:
  std::filesystem::path path_;
};

}  // namespace

Blob map_file(const std::filesystem::path& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat info {};
  if (file.fd < 0 || ::fstat(file.fd, &info) != 0) {
    fail(ErrorKind::kIo, "cannot open {}: {}", path.string(), std::strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) fail(ErrorKind::kIo, "{} is not a regular file", path.string());
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) return {};
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (address == MAP_FAILED) {
    fail(ErrorKind::kIo, "cannot map {}: {}", path.string(), std::strerror(errno));
  }
  std::shared_ptr<const void> owner(address, [size](void* p) { ::munmap(p, size); });
  return {{static_cast<const std::byte*>(address), size}, std::move(owner)};
}

std::shared_ptr<const FileSource> open_directory(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    fail(ErrorKind::kIo, "{} is not a directory", path.string());
  }
  return std::make_shared<DirectorySource>(path);
}

}  // namespace jemm

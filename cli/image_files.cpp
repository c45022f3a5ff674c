#include "image_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "contract/json_members.h"
#include "contract/request.h"

namespace jemm::cli {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, std::string_view reason) {
  throw Error::request("OSError", fmt::format("image file {}: {}", path.string(), reason));
}

/// An open descriptor, closed at the end.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

std::vector<std::filesystem::path> image_paths(std::string_view json,
                                               const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> paths;
  try {
    for (const std::string_view element : json_elements(json)) {
      const std::string path = json_string_value(element);
      if (path.empty() || path.find('\0') != std::string::npos) throw std::runtime_error("no path");
      if (paths.size() <= kMaxImages) paths.push_back(directory / path);
    }
  } catch (const std::runtime_error&) {
    throw Error::request("ValueError", "image_files must be a list of paths");
  }
  if (paths.size() > kMaxImages) throw too_many_images();
  return paths;
}

std::string read_image_file(const std::filesystem::path& path) {
  // Looked at before it is opened: opening a device may already do something.
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) refuse(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) refuse(path, "not a regular file");
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) refuse(path, std::strerror(errno));
  std::string bytes;
  while (bytes.size() <= kMaxBodyBytes) {
    constexpr std::size_t kChunk = std::size_t{1} << 20;
    const std::size_t n_before = bytes.size();
    bytes.resize(n_before + kChunk);
    const ssize_t n = ::read(file.fd, bytes.data() + n_before, kChunk);
    if (n < 0 && errno != EINTR) refuse(path, std::strerror(errno));
    bytes.resize(n_before + static_cast<std::size_t>(n < 0 ? 0 : n));
    if (n == 0) return bytes;
  }
  refuse(path, fmt::format("over {} bytes", kMaxBodyBytes));
}

}  // namespace jemm::cli

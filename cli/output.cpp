#include "output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "input.h"

namespace jemm::cli {
namespace {

int open_file(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd >= 0) return fd;
  if (errno == EEXIST) {
    fail(ErrorKind::kUsage, "{} exists; --force overwrites it", path);
  }
  fail(ErrorKind::kIo, "cannot write {}: {}", path, std::strerror(errno));
}

}  // namespace

Output Output::standard_output() {
  return {STDOUT_FILENO, "standard output"};
}

Output Output::create(const std::string& path, bool force) {
  return {open_file(path, force ? O_TRUNC : O_EXCL), path};
}

Output Output::resume(const std::string& path) {
  return {open_file(path, 0), path};
}

Output::Output(Output&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), name_(std::move(other.name_)) {}

Output::~Output() {
  if (fd_ > STDERR_FILENO) ::close(fd_);
}

bool Output::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n_written = ::write(fd_, text.data(), text.size());
    if (n_written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(n_written));
    } else if (errno == EPIPE) {
      return false;
    } else if (errno == EAGAIN) {
      pollfd waiter{fd_, POLLOUT, 0};
      ::poll(&waiter, 1, -1);
    } else if (errno != EINTR) {
      fail(ErrorKind::kIo, "cannot write {}: {}", name_, std::strerror(errno));
    }
  }
  return true;
}

void Output::truncate(std::uint64_t size) {
  if (::ftruncate(fd_, static_cast<off_t>(size)) != 0 || ::lseek(fd_, 0, SEEK_END) < 0) {
    fail(ErrorKind::kIo, "cannot cut {}: {}", name_, std::strerror(errno));
  }
}

void Output::close() {
  if (fd_ < 0) return;
  if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR) {
    fail(ErrorKind::kIo, "cannot write {}: {}", name_, std::strerror(errno));
  }
}

void check_not_input(const std::string& path, const Inputs& inputs) {
  if (inputs.include(path)) fail(ErrorKind::kUsage, "--out {} is also an input", path);
}

void check_output(const std::string& path, bool force, const Inputs& inputs) {
  if (path.empty()) return;
  check_not_input(path, inputs);
  const bool exists = ::access(path.c_str(), F_OK) == 0;
  if (exists && !force) fail(ErrorKind::kUsage, "{} exists; --force overwrites it", path);
  const std::string directory = std::filesystem::path(path).parent_path().string();
  const std::string place = exists ? path : directory.empty() ? "." : directory;
  if (::access(place.c_str(), W_OK) != 0) {
    fail(ErrorKind::kIo, "cannot write {}: {}", path, std::strerror(errno));
  }
}

Output open_output(const std::string& path, bool force, const Inputs& inputs) {
  if (path.empty()) return Output::standard_output();
  check_output(path, force, inputs);
  return Output::create(path, force);
}

bool wants_color() {
  const char* no_color = std::getenv("NO_COLOR");
  return (no_color == nullptr || *no_color == '\0') && ::isatty(STDOUT_FILENO) == 1;
}

}  // namespace jemm::cli

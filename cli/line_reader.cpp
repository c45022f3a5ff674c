#include "line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "signals.h"

namespace jemm::cli {
namespace {
constexpr std::size_t kChunkBytes = std::size_t{1} << 18;
}

LineReader::LineReader(int fd, bool owned, std::string name, std::size_t max_bytes)
    : fd_(fd), owned_(owned), name_(std::move(name)), max_bytes_(max_bytes) {}

LineReader::~LineReader() {
  if (owned_) ::close(fd_);
}

ReadStatus LineReader::next(std::string& line, Wait wait) {
  for (;;) {
    const char* begin = chunk_.data() + chunk_ofs_;
    const std::size_t n_left = chunk_.size() - chunk_ofs_;
    const auto* end =
        n_left == 0 ? nullptr : static_cast<const char*>(std::memchr(begin, '\n', n_left));
    if (end != nullptr) {
      keep(begin, end);
      chunk_ofs_ = static_cast<std::size_t>(end - chunk_.data()) + 1;
      ended_ = true;
      break;
    }
    if (n_left > 0) keep(begin, begin + n_left);
    chunk_ofs_ = chunk_.size();
    if (at_end_) {
      if (!partial_open_) return ReadStatus::kEnd;
      ended_ = false;
      break;
    }
    const ReadStatus status = fill(wait);
    if (status == ReadStatus::kNotYet || status == ReadStatus::kInterrupted) return status;
  }
  line = std::exchange(partial_, {});
  partial_open_ = false;
  if (!line.empty() && line.back() == '\r') line.pop_back();
  ++line_number_;
  return ReadStatus::kLine;
}

void LineReader::keep(const char* begin, const char* end) {
  partial_open_ = true;
  const std::size_t room = max_bytes_ + 1 - partial_.size();
  partial_.append(begin, std::min(room, static_cast<std::size_t>(end - begin)));
}

ReadStatus LineReader::fill(Wait wait) {
  for (;;) {
    if (interrupted()) return ReadStatus::kInterrupted;
    pollfd waiter{fd_, POLLIN, 0};
    // A signal that arrives just before poll is noticed within the time-out.
    const int n_ready = ::poll(&waiter, 1, wait == Wait::kYes ? 200 : 0);
    if (n_ready == 0) {
      if (wait == Wait::kNo) return ReadStatus::kNotYet;
      continue;
    }
    if (n_ready < 0 && errno == EINTR) continue;
    chunk_.resize(kChunkBytes);
    chunk_ofs_ = 0;
    const ssize_t n_read = ::read(fd_, chunk_.data(), chunk_.size());
    const int error = errno;
    chunk_.resize(n_read > 0 ? static_cast<std::size_t>(n_read) : 0);
    if (n_read < 0) {
      if (error == EINTR || error == EAGAIN) continue;
      fail(ErrorKind::kIo, "cannot read {}: {}", name_, std::strerror(error));
    }
    at_end_ = n_read == 0;
    bytes_read_ += static_cast<std::uint64_t>(n_read);
    return ReadStatus::kLine;
  }
}

}  // namespace jemm::cli

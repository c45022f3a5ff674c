// Positioned reads, with one block read ahead.
#include "base/blocks.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <future>
#include <memory>
#include <thread>

#include "base/error.h"
#include "base/sha256.h"

namespace jemm {

BlockFile::BlockFile(const std::filesystem::path& path)
    : name_(path.string()), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat info {};
  const bool known = fd_ >= 0 && ::fstat(fd_, &info) == 0;
  if (known && S_ISREG(info.st_mode)) {
    size_ = static_cast<std::uint64_t>(info.st_size);
    mtime_ns_ = std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
    ::posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
    return;
  }
  const int reason = errno;
  if (fd_ >= 0) ::close(fd_);
  if (known) fail(ErrorKind::kIo, "{} is not a regular file", name_);
  fail(ErrorKind::kIo, "cannot open {}: {}", name_, std::strerror(reason));
}

BlockFile::~BlockFile() {
  ::close(fd_);
}

void BlockFile::read(std::uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t n = ::pread(fd_, to.data(), to.size(), static_cast<off_t>(offset));
    if (n > 0) {
      to = to.subspan(static_cast<std::size_t>(n));
      offset += static_cast<std::uint64_t>(n);
    } else if (n == 0) {
      fail(ErrorKind::kIo, "{} ends at byte {}, before it should", name_, offset);
    } else if (errno != EINTR) {
      fail(ErrorKind::kIo, "cannot read {}: {}", name_, std::strerror(errno));
    }
  }
}

std::vector<FileRange> block_ranges(std::uint64_t begin, std::uint64_t end) {
  std::vector<FileRange> ranges;
  while (begin < end) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(kBlockBytes, end - begin));
    ranges.push_back({begin, size});
    begin += size;
  }
  return ranges;
}

void for_each_range(const BlockFile& file, std::span<const FileRange> ranges,
                    const std::function<void(std::size_t, std::span<const std::byte>)>& consume) {
  std::size_t largest = 0;
  for (const FileRange& range : ranges) largest = std::max(largest, range.size);
  // Not value-initialised: a short file should not touch two whole blocks.
  const std::unique_ptr<std::byte[]> memory[2] = {
      std::make_unique_for_overwrite<std::byte[]>(largest),
      std::make_unique_for_overwrite<std::byte[]>(ranges.size() > 1 ? largest : 0)};
  const auto begin_read = [&](std::size_t i) {
    const std::span<std::byte> to(memory[i % 2].get(), ranges[i].size);
    // A thread costs more than a short read.
    const auto policy = to.size() < (1U << 20) ? std::launch::deferred : std::launch::async;
    return std::async(policy, [&file, to, offset = ranges[i].offset] { file.read(offset, to); });
  };
  std::future<void> next;
  if (!ranges.empty()) next = begin_read(0);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    next.get();
    if (i + 1 < ranges.size()) next = begin_read(i + 1);
    consume(i, {memory[i % 2].get(), ranges[i].size});
  }
}

std::string sha256_of_file(const std::filesystem::path& path) {
  const BlockFile file(path);
  Sha256 hash;
  for_each_range(file, block_ranges(0, file.size()),
                 [&hash](std::size_t, std::span<const std::byte> bytes) { hash.update(bytes); });
  return hash.hex();
}

void in_threads(std::size_t count, std::size_t n_threads,
                const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  const auto loop = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      throw;
    }
  };
  std::vector<std::future<void>> threads;
  for (std::size_t i = 1; i < std::min(count, n_threads); ++i) {
    threads.push_back(std::async(std::launch::async, loop));
  }
  std::exception_ptr first;
  try {
    loop();
  } catch (...) {
    first = std::current_exception();
  }
  for (std::future<void>& thread : threads) {
    try {
      thread.get();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace jemm

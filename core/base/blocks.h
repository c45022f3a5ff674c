// Reading of large files block by block, so that memory does not grow with the file. Knows no
// formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace jemm {

inline constexpr std::size_t kBlockBytes = std::size_t{64} << 20;

/// A regular file open for reading at any offset, by several threads at once.
class BlockFile {
 public:
  /// Throws Error(kIo), naming the file.
  explicit BlockFile(const std::filesystem::path& path);
  ~BlockFile();
  BlockFile(const BlockFile&) = delete;
  BlockFile& operator=(const BlockFile&) = delete;

  std::uint64_t size() const { return size_; }
  std::int64_t mtime_ns() const { return mtime_ns_; }
  /// Fills `to` from `offset`. Throws Error(kIo) when the file ends before.
  void read(std::uint64_t offset, std::span<std::byte> to) const;

 private:
  std::string name_;
  int fd_;
  std::uint64_t size_ = 0;
  std::int64_t mtime_ns_ = 0;
};

struct FileRange {
  std::uint64_t offset = 0;
  std::size_t size = 0;  ///< at most kBlockBytes
};

/// [begin, end) in ranges of kBlockBytes; the last may be shorter.
std::vector<FileRange> block_ranges(std::uint64_t begin, std::uint64_t end);

/// Calls consume(i, bytes of ranges[i]) in order, while the next range is read by another thread.
void for_each_range(const BlockFile& file, std::span<const FileRange> ranges,
                    const std::function<void(std::size_t, std::span<const std::byte>)>& consume);

/// SHA-256 of a whole file as lower-case hexadecimal, read ahead while it is hashed.
std::string sha256_of_file(const std::filesystem::path& path);

/// Calls work(i) for i < count by at most `n_threads` threads. The first exception is thrown when
/// all have ended; no new work is begun after one.
void in_threads(std::size_t count, std::size_t n_threads,
                const std::function<void(std::size_t)>& work);

}  // namespace jemm

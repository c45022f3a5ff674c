// Lines of a file descriptor, read as they arrive and never more than one line in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace jemm::cli {

enum class Wait { kNo, kYes };
enum class ReadStatus { kLine, kEnd, kNotYet, kInterrupted };

/// A line ends at LF; a CR before it belongs to the ending. The last line needs no ending.
class LineReader {
 public:
  /// `fd` is closed on destruction when `owned`. Lines over `max_bytes` come back cut to
  /// max_bytes + 1 bytes, their rest is skipped without being kept.
  LineReader(int fd, bool owned, std::string name, std::size_t max_bytes);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  /// The next line. Wait::kNo returns kNotYet rather than block; kInterrupted when a signal asked
  /// to stop. Throws Error(kIo), naming the input.
  ReadStatus next(std::string& line, Wait wait);
  /// Number of the line last returned, from 1.
  std::uint64_t line_number() const { return line_number_; }
  /// Bytes of the lines returned so far, endings included.
  std::uint64_t bytes_consumed() const { return bytes_read_ - (chunk_.size() - chunk_ofs_); }
  /// Whether the line last returned ended in LF.
  bool ended() const { return ended_; }

 private:
  ReadStatus fill(Wait wait);
  void keep(const char* begin, const char* end);

  int fd_;
  bool owned_;
  std::string name_;
  std::size_t max_bytes_;
  std::string chunk_;
  std::size_t chunk_ofs_ = 0;
  std::string partial_;
  bool partial_open_ = false;  ///< a line has begun, perhaps with no bytes kept
  bool at_end_ = false;
  bool ended_ = false;
  std::uint64_t line_number_ = 0;
  std::uint64_t bytes_read_ = 0;
};

}  // namespace jemm::cli

// Where result lines go: standard output or a file, one write a line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace jemm::cli {

class Inputs;

/// A line is written whole or the failure is known.
class Output {
 public:
  static Output standard_output();
  /// Creates `path`; an existing file is Error(kUsage) unless `force`, which empties it.
  static Output create(const std::string& path, bool force);
  /// Opens `path` (created when absent) for a resumed run; a torn last line is cut off later.
  static Output resume(const std::string& path);

  Output(Output&& other) noexcept;
  Output& operator=(Output&&) = delete;
  ~Output();

  /// Appends `text`. False when the other end of a pipe is closed; throws Error(kIo), naming the
  /// file, for every other failure.
  bool write(std::string_view text);
  /// Cuts the file to `size` bytes and goes on writing there.
  void truncate(std::uint64_t size);
  /// Closes the file; a failure that shows only now throws Error(kIo).
  void close();

  const std::string& name() const { return name_; }

 private:
  Output(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}

  int fd_;
  std::string name_;
};

/// Whether standard output is a terminal and NO_COLOR is not set.
bool wants_color();

/// Throws Error(kUsage) for a file that is also read.
void check_not_input(const std::string& path, const Inputs& inputs);
/// What open_output would throw, as far as it can be known without touching the file: for the time
/// before long work.
void check_output(const std::string& path, bool force, const Inputs& inputs);
/// Standard output when `path` is empty, else a new file (Output::create). Throws Error(kUsage) for
/// a file that is also read.
Output open_output(const std::string& path, bool force, const Inputs& inputs);

}  // namespace jemm::cli

// A file of JSON lines with a key each, read in order or by key, one line in memory.
#pragma once

#include <array>
#include <cstdint>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace jemm {

/// Holds 24 bytes a line. Blank lines do not count. Not thread-safe.
class IndexedLines {
 public:
  /// What a line is found by. `where` names the line, for messages.
  using KeyOf = std::function<std::string(std::string_view line, const std::string& where)>;

  /// Reads the file once. Throws Error(kIo) for a missing file, Error(kInput) for a line over 256
  /// MiB, and whatever `key_of` throws.
  IndexedLines(const std::string& path, KeyOf key_of);

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return index_.size(); }
  /// Keys that occur more than once, each one once.
  const std::vector<std::string>& duplicates() const { return duplicates_; }
  bool contains(std::string_view key) const;

  /// The next line in the order of the file; nothing behind the last one. Valid until the next
  /// call.
  std::optional<std::string_view> next();
  void rewind();
  /// The first line of that key. next() goes on behind it.
  std::optional<std::string_view> find(std::string_view key);
  /// The place of the line last returned, for messages.
  std::string where() const;

 private:
  using Key = std::array<std::uint64_t, 2>;  // the first half of the SHA-256
  struct Entry {
    Key key;
    std::uint64_t offset = 0;
    auto operator<=>(const Entry&) const = default;
  };

  static Key hash(std::string_view key);
  const Entry* entry(std::string_view key) const;
  void seek(std::uint64_t offset);
  bool read_line();

  std::string path_;
  std::ifstream file_;
  std::string line_;
  std::uint64_t line_begin_ = 0;   // offset of line_
  std::uint64_t next_begin_ = 0;   // offset behind it
  std::uint64_t line_number_ = 0;  // 0: unknown
  std::vector<Entry> index_;       // sorted
  std::vector<std::string> duplicates_;
};

}  // namespace jemm

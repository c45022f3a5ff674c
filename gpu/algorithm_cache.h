// The algorithms that were found fastest on this machine, in a small file. Knows no library: an
// algorithm is a key and 64 opaque bytes.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace jemm::gpu {

using AlgorithmBytes = std::array<std::uint64_t, 8>;

/// What cannot be read, is damaged, or was written for another identity counts as empty; what
/// cannot be written is not kept. Never an error.
class AlgorithmCache {
 public:
  /// `identity`: all that an algorithm depends on, in one line. The file lies in `directory`, named
  /// after the identity; an empty directory: nothing is kept.
  AlgorithmCache(const std::filesystem::path& directory, std::string identity);

  /// $JEMM_CACHE_DIR, or $XDG_CACHE_HOME/jemm, or ~/.cache/jemm, or empty.
  static std::filesystem::path default_directory();

  std::optional<AlgorithmBytes> find(const std::string& key) const;
  /// `key`: printable, without tabs.
  void put(const std::string& key, const AlgorithmBytes& algorithm);
  /// Writes the file anew where something was put since the last time, with what others have put
  /// into it meanwhile; of two that write at the very same time, one loses what it found.
  void save();

  const std::filesystem::path& file() const { return file_; }

 private:
  std::string identity_;
  std::filesystem::path file_;
  std::map<std::string, AlgorithmBytes> algorithms_;
  bool changed_ = false;
};

}  // namespace jemm::gpu

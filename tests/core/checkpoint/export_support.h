// Scratch directories with fixtures in them, for tests of exports.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace jemm {

namespace fs = std::filesystem;

/// A fresh directory that is removed with the object.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (fs::temp_directory_path() / "jemm-export-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

inline std::string read_all(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot open " + path.string());
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Writes a new file in place of an old one, which may be a hard link to another's.
inline void write_all(const fs::path& path, const std::string& content) {
  fs::remove(path);
  std::ofstream(path, std::ios::binary) << content;
}

/// Copies fixtures/NAME to a scratch directory, writable.
inline void copy_fixture(const std::string& name, const fs::path& to) {
  fs::copy(fs::path(JEMM_SOURCE_DIR) / "fixtures" / name, to, fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(to)) {
    fs::permissions(entry, fs::perms::owner_write, fs::perm_options::add);
  }
}

}  // namespace jemm

// Other programs that check what the renderers write.
#pragma once

#include <filesystem>
#include <string>

namespace jemm::test {

struct Ran {
  int code = -1;
  std::string out;  ///< standard output
};
/// Runs a command of the shell. Whoever calls it quotes.
Ran run_shell(const std::string& command);
bool has_program(const std::string& name);

/// A fresh directory that is removed with the object.
class TestDir {
 public:
  TestDir();
  ~TestDir();
  TestDir(const TestDir&) = delete;
  TestDir& operator=(const TestDir&) = delete;

  std::string path(const std::string& name) const { return (path_ / name).string(); }
  /// Writes a file and returns its path.
  std::string write(const std::string& name, const std::string& content) const;

 private:
  std::filesystem::path path_;
};

std::string read_file(const std::string& path);

}  // namespace jemm::test

// Runs the built program as a user would: arguments, standard input, exit status, what it printed.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace jemm::test {

struct Finished {
  int code = -1;         ///< exit status; 128 + signal when killed
  std::string out;
  std::string err;
  long max_rss_kib = 0;  ///< largest resident set
};

struct Process {
  std::vector<std::string> arguments{};
  std::string input{};                 ///< standard input, empty unless input_file
  std::string input_file{};            ///< opened as standard input instead
  std::string output_file{};           ///< opened as standard output instead, e.g. /dev/full
  bool close_stderr = false;
};

/// Runs jemm to its end.
Finished run_jemm(const Process& process);
inline Finished run_jemm(const std::vector<std::string>& arguments, const std::string& input = {}) {
  return run_jemm(Process{.arguments = arguments, .input = input});
}

/// Starts jemm and returns its pid; standard output and error go to /dev/null unless named.
pid_t start_jemm(const Process& process);
/// Waits for it; the code as in Finished.
int wait_jemm(pid_t pid);

/// A fresh directory that is removed with the object.
class ScratchDir {
 public:
  ScratchDir();
  ~ScratchDir();
  ScratchDir(const ScratchDir&) = delete;
  ScratchDir& operator=(const ScratchDir&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }
  /// Writes a file and returns its path.
  std::string write(const std::string& name, const std::string& content) const;

 private:
  std::filesystem::path path_;
};

std::string read_text(const std::string& path);

}  // namespace jemm::test

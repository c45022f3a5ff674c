#include "cli/process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace jemm::test {
namespace {

int code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void redirect(const std::string& path, int flags, int fd) {
  const int opened = ::open(path.c_str(), flags, 0666);
  if (opened < 0 || ::dup2(opened, fd) < 0) ::_exit(99);
  ::close(opened);
}

[[noreturn]] void become_jemm(const Process& process, const std::string& err_path) {
  if (process.close_stderr) {
    ::close(STDERR_FILENO);
  } else {
    redirect(err_path, O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
  }
  std::vector<char*> argv;
  std::string program = JEMM_PROGRAM;
  argv.push_back(program.data());
  std::vector<std::string> arguments = process.arguments;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  // The commands are tested on the CPU engine, whatever the machine has.
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
  ::execv(program.c_str(), argv.data());
  ::_exit(98);
}

}  // namespace

ScratchDir::ScratchDir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "jemm-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = pattern;
}

ScratchDir::~ScratchDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string ScratchDir::write(const std::string& name, const std::string& content) const {
  std::filesystem::create_directories((path_ / name).parent_path());
  std::ofstream(path_ / name, std::ios::binary) << content;
  return file(name);
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot open " + path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

pid_t start_jemm(const Process& process) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  redirect(process.input_file.empty() ? "/dev/null" : process.input_file, O_RDONLY, STDIN_FILENO);
  redirect(process.output_file.empty() ? "/dev/null" : process.output_file, O_WRONLY,
           STDOUT_FILENO);
  become_jemm(process, "/dev/null");
}

int wait_jemm(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return code_of(status);
}

Finished run_jemm(const Process& process) {
  const ScratchDir scratch;
  const std::string out_path = scratch.file("out");
  const std::string err_path = scratch.file("err");
  std::string in_path = process.input_file;
  if (in_path.empty()) in_path = scratch.write("in", process.input);
  const pid_t pid = ::fork();
  if (pid == 0) {
    redirect(in_path, O_RDONLY, STDIN_FILENO);
    if (process.output_file.empty()) {
      redirect(out_path, O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
    } else {
      redirect(process.output_file, O_WRONLY, STDOUT_FILENO);
    }
    become_jemm(process, err_path);
  }
  Finished finished;
  int status = 0;
  rusage usage{};
  ::wait4(pid, &status, 0, &usage);
  finished.code = code_of(status);
  finished.max_rss_kib = usage.ru_maxrss;
  if (process.output_file.empty()) finished.out = read_text(out_path);
  if (!process.close_stderr) finished.err = read_text(err_path);
  return finished;
}

}  // namespace jemm::test

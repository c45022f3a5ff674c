// Helpers of the tokenizer tests: files in memory, goldens, and the folder outside the repository.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "tokens/tokenizer.h"

namespace jemm::test {

/// A checkpoint directory that exists only here.
class MemoryFiles : public FileSource {
 public:
  std::map<std::string, std::string, std::less<>> files;

  std::string name() const override { return "memory"; }
  bool contains(std::string_view file) const override { return files.contains(file); }
  Blob open(std::string_view file) const override {
    const auto found = files.find(file);
    if (found == files.end()) fail(ErrorKind::kIo, "{} is absent", file);
    return {std::as_bytes(std::span(found->second)), nullptr};
  }
};

inline std::string read(const std::string& path) {
  return std::string(map_file(path).text());
}

inline std::unique_ptr<const Tokenizer> load(const std::string& directory,
                                             const TokenizerOptions& options = {}) {
  return load_tokenizer(*open_directory(directory), options);
}

inline std::vector<std::int32_t> encode(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::int32_t> ids;
  tokenizer.encode(text, ids);
  return ids;
}

/// Calls `check` with each line of a JSON lines file.
template <typename Check>
void for_each_line(const std::string& path, Check check) {
  const std::string text = read(path);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin)
      check(nlohmann::json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                  text.begin() + static_cast<std::ptrdiff_t>(end)));
    begin = end + 1;
  }
}

/// The folder of goldens outside the repository; says so when it is not set.
inline std::optional<std::string> extra_golden() {
  const char* folder = std::getenv("JEMM_EXTRA_GOLDEN");
  if (folder != nullptr) return folder;
  MESSAGE("JEMM_EXTRA_GOLDEN is not set");
  return std::nullopt;
}

/// What an Error says; fails the test when `run` throws none or one of another kind.
template <typename Run>
std::string error_of(ErrorKind kind, Run run) {
  try {
    run();
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  FAIL_CHECK("no error");
  return {};
}

}  // namespace jemm::test

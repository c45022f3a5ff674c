// The lines that an earlier, interrupted run left in its output file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "evaluate/evaluator.h"
#include "line_reader.h"

namespace jemm::cli {

/// What resuming needs to know of an output line.
struct AnsweredLine {
  std::string id;  ///< JSON text
  std::string request_sha256;
  std::string engine;
  bool failed = false;  ///< an error line
  std::size_t n_questions = 0;
  std::size_t n_undecided = 0;
  std::optional<ReuseAudit> audit;
};

/// Reads an output file line by line. A torn last line ends it.
class AnsweredLines {
 public:
  /// An absent file has no lines. Throws Error(kIo), or Error(kUsage) for no regular file.
  explicit AnsweredLines(const std::string& path);

  /// False at the end. Throws Error(kUsage), naming file and line, for a line that is no result.
  bool next(AnsweredLine& line);
  /// Bytes of the lines returned so far: what the resumed run keeps.
  std::uint64_t kept_bytes() const { return kept_bytes_; }
  std::uint64_t n_lines() const { return n_lines_; }

 private:
  std::string path_;
  std::unique_ptr<LineReader> reader_;
  std::uint64_t kept_bytes_ = 0;
  std::uint64_t n_lines_ = 0;
};

}  // namespace jemm::cli

// A report that is written at the end of a run, its place taken at the start.
#pragma once

#include <string>
#include <string_view>

#include "output.h"

namespace jemm::cli {

class ReportFile {
 public:
  /// Creates `path`. With `force` a regular file that is there stays as it is until write, and is
  /// then overwritten (a link's target). Throws Error(kUsage) for one that is there without `force`
  /// and for a device or a directory, Error(kIo) when it cannot be written.
  ReportFile(const std::string& path, bool force);
  /// Removes a file that was created and not written.
  ~ReportFile();
  ReportFile(const ReportFile&) = delete;
  ReportFile& operator=(const ReportFile&) = delete;

  /// The whole report. Throws Error(kIo).
  void write(std::string_view text);

 private:
  std::string path_;
  bool is_ours_;  ///< created here, and empty
  Output output_;
};

/// Whether two paths name one file, which need not be there yet.
bool is_same_file(const std::string& a, const std::string& b);

}  // namespace jemm::cli

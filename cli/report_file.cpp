#include "report_file.h"

#include <filesystem>
#include <system_error>

#include "base/error.h"

namespace jemm::cli {
namespace {

namespace fs = std::filesystem;

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

Output open_existing(const std::string& path) {
  std::error_code ignored;
  const fs::file_status target = fs::status(path, ignored);
  if (fs::exists(target) && !fs::is_regular_file(target)) {
    fail(ErrorKind::kUsage, "{} is no regular file, so no report is written there", path);
  }
  return Output::resume(path);
}

}  // namespace

ReportFile::ReportFile(const std::string& path, bool force)
    : path_(path),
      is_ours_(!force || !is_there(path)),
      output_(is_ours_ ? Output::create(path, false) : open_existing(path)) {}

ReportFile::~ReportFile() {
  std::error_code ignored;
  if (is_ours_) fs::remove(path_, ignored);
}

void ReportFile::write(std::string_view text) {
  output_.truncate(0);
  output_.write(text);
  output_.close();
  is_ours_ = false;
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  const auto place = [&error](const std::string& path) {
    return fs::weakly_canonical(fs::absolute(path, error), error);
  };
  const fs::path place_a = place(a);
  return !place_a.empty() && place_a == place(b);
}

}  // namespace jemm::cli

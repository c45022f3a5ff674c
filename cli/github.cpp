// Annotations and the step summary, where Actions looks for them.
#include "github.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "base/error.h"
#include "judge/render.h"
#include "progress.h"

namespace jemm::cli {
namespace {

constexpr std::uintmax_t kMaxSummaryBytes = std::uintmax_t{1} << 20;

}  // namespace

bool on_github_actions() {
  const char* value = std::getenv("GITHUB_ACTIONS");
  return value != nullptr && std::string_view(value) == "true";
}

void publish_on_github(const Report& report) {
  log_text(github_annotations(report));
  const char* path = std::getenv("GITHUB_STEP_SUMMARY");
  if (path == nullptr || *path == '\0') return;
  std::error_code absent;
  const std::uintmax_t size = std::filesystem::file_size(path, absent);
  const std::uintmax_t used = absent ? 0 : size;
  if (used >= kMaxSummaryBytes) return;
  std::ofstream file(path, std::ios::binary | std::ios::app);
  file << github_summary(report, static_cast<std::size_t>(kMaxSummaryBytes - used));
  file.close();
  if (!file) fail(ErrorKind::kIo, "cannot write {}", path);
}

}  // namespace jemm::cli

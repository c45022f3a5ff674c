#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "validators.h"

namespace jemm::cli {
namespace {

constexpr std::chrono::milliseconds kBarInterval{200};
constexpr std::chrono::seconds kHeartbeatInterval{10};
constexpr int kBarCells = 30;

void write_error(std::string_view text) {
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::max(0.0, seconds));
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

void log_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      line += fmt::format("\\x{:02x}", byte);
    } else {
      line += c;
    }
  }
  write_error(line + "\n");
}

void log_text(std::string_view text) {
  write_error(std::string(text));
}

void add_progress_option(CLI::App& command, ProgressMode& mode) {
  add_choice<ProgressMode>(command, "--progress", mode,
                           {{"auto", ProgressMode::kAuto},
                            {"bar", ProgressMode::kBar},
                            {"plain", ProgressMode::kPlain},
                            {"none", ProgressMode::kNone}},
                           "How a long run shows its progress on standard error");
}

Progress::Progress(ProgressMode mode, std::string what) : mode_(mode), what_(std::move(what)) {
  if (mode_ == ProgressMode::kAuto) {
    mode_ = ::isatty(STDERR_FILENO) != 0 ? ProgressMode::kBar : ProgressMode::kPlain;
  }
}

Progress::~Progress() {
  clear();
}

void Progress::update(std::uint64_t n_done, std::uint64_t n_errors,
                      std::optional<double> fraction) {
  if (mode_ == ProgressMode::kNone) return;
  const Clock::time_point now = Clock::now();
  const bool bar = mode_ == ProgressMode::kBar;
  const Clock::duration interval = bar ? Clock::duration(kBarInterval) : kHeartbeatInterval;
  if (now - last_ < interval) return;
  last_ = now;
  const double elapsed_s = std::chrono::duration<double>(now - start_).count();
  std::string text = fmt::format("{} {}, {} errors, {:.1f}/s", n_done, what_, n_errors,
                                 static_cast<double>(n_done) / elapsed_s);
  if (fraction && *fraction > 0) {
    const double share = std::min(1.0, *fraction);
    text += fmt::format(", ETA {}", duration_text(elapsed_s / share - elapsed_s));
    if (bar) {
      const int n_full = static_cast<int>(share * kBarCells);
      text =
          fmt::format("[{:-<{}}] {:3.0f}% {}", std::string(static_cast<std::size_t>(n_full), '#'),
                      kBarCells, 100 * share, text);
    }
  }
  write_error(bar ? "\r\x1b[K" + text : text + "\n");
  bar_shown_ = bar;
}

void Progress::clear() {
  if (std::exchange(bar_shown_, false)) write_error("\r\x1b[K");
}

}  // namespace jemm::cli

// How far a long run is: a bar on a terminal, a heartbeat line elsewhere, on standard error.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace jemm::cli {

enum class ProgressMode { kAuto, kBar, kPlain, kNone };

class Progress {
 public:
  /// `what` names the counted things ("requests").
  Progress(ProgressMode mode, std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Call it once a finished thing. `fraction`: the share of the input that is done, when known.
  void update(std::uint64_t n_done, std::uint64_t n_errors, std::optional<double> fraction);
  /// Removes the bar, so that other messages can be written.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  ProgressMode mode_;
  std::string what_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
  bool bar_shown_ = false;
};

/// Adds --progress.
void add_progress_option(CLI::App& command, ProgressMode& mode);

/// A line on standard error, control characters in it as escapes; a failure to write it is ignored.
void log_line(std::string_view text);
/// Lines that are to stand there as they are.
void log_text(std::string_view text);

}  // namespace jemm::cli

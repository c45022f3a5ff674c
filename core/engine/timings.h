// The stages of answering a request and the time each one took. One list for timings and reports.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <string_view>

namespace jemm {

enum class Stage {
  kParse,
  kImageDecode,
  kImagePreprocess,
  kTokenize,
  kPlan,
  kUpload,
  kVision,
  kText,
  kHead,
  kCalibrate,
  kWrite,
};
inline constexpr std::size_t kStages = 11;
inline constexpr std::array<std::string_view, kStages> kStageNames = {
    "parse", "image.decode", "image.preprocess", "tokenize", "plan", "upload", "vision",
    "text",  "head",         "calibrate",        "write"};

/// Milliseconds spent in each stage, and the total measured around them.
struct StageTimes {
  std::array<double, kStages> stage_ms{};
  double total_ms = 0;

  double& operator[](Stage stage) { return stage_ms[static_cast<std::size_t>(stage)]; }
  double operator[](Stage stage) const { return stage_ms[static_cast<std::size_t>(stage)]; }
  void add(const StageTimes& other, double share = 1) {
    for (std::size_t i = 0; i < kStages; ++i) stage_ms[i] += share * other.stage_ms[i];
    total_ms += share * other.total_ms;
  }
};

/// Adds the time between construction and destruction to `sum_ms`.
class StageTimer {
 public:
  explicit StageTimer(double& sum_ms) : sum_ms_(sum_ms) {}
  ~StageTimer() {
    sum_ms_ += std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
  }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double& sum_ms_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace jemm

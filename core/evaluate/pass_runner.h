// The thread on which an engine computes a pass while the next one is prepared.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "engine/engine.h"
#include "evaluate/pass_job.h"

namespace jemm {

/// Runs jobs in the order in which they come: one runs, one more waits, so that the engine goes
/// from one to the next at once. All members are for one thread. A job is the runner's from submit
/// until wait has returned, with the `rows` of its images; then everything of it can be seen.
class PassRunner {
 public:
  /// The engine must outlive the runner.
  explicit PassRunner(Engine& engine) : engine_(engine) {}
  /// Waits for the job that runs; one that waits is dropped.
  ~PassRunner();
  PassRunner(const PassRunner&) = delete;
  PassRunner& operator=(const PassRunner&) = delete;

  /// Returns when no other job waits: the last but one before it is through. The first call starts
  /// the thread; where the system refuses it, the job is through when submit returns.
  void submit(PassJob& job);
  /// Returns when the job is through.
  void wait(const PassJob& job);

 private:
  void work();

  Engine& engine_;
  std::mutex mutex_;
  std::condition_variable changed_;  // any of the three below
  PassJob* running_ = nullptr;
  PassJob* waiting_ = nullptr;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace jemm

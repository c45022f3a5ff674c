#include "evaluate/pass_runner.h"

#include <system_error>
#include <utility>

namespace jemm {

PassRunner::~PassRunner() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void PassRunner::submit(PassJob& job) {
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { work(); });
    } catch (const std::system_error&) {  // no thread to be had: then here and now
      return run_pass(engine_, job);
    }
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_ == nullptr; });
  waiting_ = &job;
  changed_.notify_all();
}

void PassRunner::wait(const PassJob& job) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return running_ != &job && waiting_ != &job; });
}

void PassRunner::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return is_ending_ || waiting_ != nullptr; });
    if (is_ending_) return;
    running_ = std::exchange(waiting_, nullptr);
    changed_.notify_all();
    lock.unlock();
    run_pass(engine_, *running_);
    lock.lock();
    running_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace jemm

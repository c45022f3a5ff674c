// Runs independent tasks on a fixed number of threads. Knows no tensors.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace jemm::cpu {

/// `n_threads` workers, the calling thread being one of them. Results may not depend on which
/// worker runs a task, nor on how many there are: that is the tasks' duty.
class ThreadPool {
 public:
  /// `n_threads`: at least 1. Throws Error(kDevice) when the system refuses a thread.
  explicit ThreadPool(int n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int n_workers() const;

  /// Calls run(task, worker) for every task in [0, n_tasks), workers in [0, n_workers), and
  /// returns when all are done. Rethrows the first exception; the tasks not yet begun are then
  /// left out. Not to be nested.
  void parallel_for(std::int64_t n_tasks,
                    const std::function<void(std::int64_t task, int worker)>& run);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace jemm::cpu

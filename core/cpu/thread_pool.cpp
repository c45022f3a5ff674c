// Rounds of tasks, and the threads that wait for them.
#include "cpu/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.h"

namespace jemm::cpu {
namespace {

// Rounds follow each other within microseconds, sooner than a sleeper wakes: look a few times
// before sleeping. Gives the processor away each time, so that others may use it.
template <typename Condition>
bool true_soon(Condition condition) {
  for (int i = 0; i < 64; ++i) {
    if (condition()) return true;
    std::this_thread::yield();
  }
  return false;
}

}  // namespace

struct ThreadPool::State {
  std::mutex mutex;
  std::condition_variable work;  // a new round, or the end
  std::condition_variable done;  // the last helper left the round
  std::atomic<std::uint64_t> round{0};
  std::atomic<int> n_busy{0};  // helpers still in the round
  std::atomic<bool> ending{false};
  std::exception_ptr error;

  const std::function<void(std::int64_t, int)>* run = nullptr;
  std::int64_t n_tasks = 0;
  std::atomic<std::int64_t> next_task{0};
  std::vector<std::thread> helpers;

  // Here and not in the pool's destructor: the helpers that run must also end when the pool's
  // constructor fails.
  ~State() {
    {
      const std::lock_guard lock(mutex);
      ending = true;
    }
    work.notify_all();
    for (std::thread& helper : helpers) helper.join();
  }

  void take_tasks(int worker) {
    try {
      for (std::int64_t task = next_task++; task < n_tasks; task = next_task++) {
        (*run)(task, worker);
      }
    } catch (...) {
      next_task = n_tasks;
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  }

  void help(int worker) {
    std::uint64_t seen = 0;
    const auto called = [&] { return ending || round != seen; };
    while (true) {
      if (!true_soon(called)) {
        std::unique_lock lock(mutex);
        work.wait(lock, called);
      }
      if (ending) return;
      ++seen;
      take_tasks(worker);
      const std::lock_guard lock(mutex);  // so that no wait for `done` misses it
      if (--n_busy == 0) done.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int n_threads) : state_(std::make_unique<State>()) {
  for (int worker = 1; worker < n_threads; ++worker) {
    try {
      state_->helpers.emplace_back([state = state_.get(), worker] { state->help(worker); });
    } catch (const std::system_error& error) {
      fail(ErrorKind::kDevice, "cannot start thread {} of {}: {}", worker + 1, n_threads,
           error.code().message());
    }
  }
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::n_workers() const {
  return static_cast<int>(state_->helpers.size()) + 1;
}

void ThreadPool::parallel_for(std::int64_t n_tasks,
                              const std::function<void(std::int64_t, int)>& run) {
  State& state = *state_;
  const bool alone = n_tasks <= 1 || state.helpers.empty();
  state.error = nullptr;
  state.run = &run;
  state.n_tasks = n_tasks;
  state.next_task = 0;
  if (!alone) {
    {
      const std::lock_guard lock(state.mutex);
      state.n_busy = static_cast<int>(state.helpers.size());
      ++state.round;
    }
    state.work.notify_all();
  }
  state.take_tasks(0);
  const auto is_done = [&] { return state.n_busy == 0; };
  if (!true_soon(is_done)) {
    std::unique_lock lock(state.mutex);
    state.done.wait(lock, is_done);
  }
  if (state.error) std::rethrow_exception(state.error);
}

}  // namespace jemm::cpu

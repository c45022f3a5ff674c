// What every operation of the engine works with: threads, products, memory of each worker.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cpu/products.h"
#include "cpu/thread_pool.h"
#include "cpu/tiles.h"

namespace jemm::cpu {

struct Context {
  explicit Context(int n_threads)
      : pool(n_threads),
        products(pool.n_workers()),
        scratch(static_cast<std::size_t>(pool.n_workers())) {}

  /// At least `n` floats of a worker's own; undefined at the start of a task.
  float* worker_floats(int worker, std::int64_t n) {
    return scratch[static_cast<std::size_t>(worker)].reserve(n);
  }

  ThreadPool pool;
  Products products;
  std::vector<FloatBuffer> scratch;  // one a worker
};

/// Calls run(row) for every row, some rows a task.
template <typename Run>
void for_rows(Context& context, std::int64_t n_rows, Run run) {
  constexpr std::int64_t kRowsATask = 16;
  context.pool.parallel_for((n_rows + kRowsATask - 1) / kRowsATask, [&](std::int64_t task, int) {
    const std::int64_t end = std::min((task + 1) * kRowsATask, n_rows);
    for (std::int64_t row = task * kRowsATask; row < end; ++row) run(row);
  });
}

}  // namespace jemm::cpu

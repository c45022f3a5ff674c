// What every operation of the engine works with: threads, products, memory of each worker.
#pragma once

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

}  // namespace jemm::cpu

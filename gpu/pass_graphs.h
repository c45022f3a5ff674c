// The launches of passes that come again, recorded. Knows no layers.
#pragma once

#include <functional>
#include <memory>

#include "gpu/cuda.h"
#include "gpu/pass_upload.h"
#include "gpu/recently_used.h"

namespace jemm::gpu {

/// A pass is enqueued plainly the first time, when products are still planned, recorded the second
/// time, and launched as one graph from then on; plainly where memory for a graph is short. The
/// last twenty graphs are kept.
class PassGraphs {
 public:
  /// `enqueue` puts the same launches on the stream for equal passes, and waits for nothing.
  void run(const DevicePass& pass, const Stream& stream, const std::function<void()>& enqueue);
  /// Must be called before memory that launches refer to goes.
  void clear() { graphs_.clear(); }

 private:
  struct GraphDeleter {
    void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
  };
  using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, GraphDeleter>;

  /// Null when memory runs out.
  static Graph record(const Stream& stream, const std::function<void()>& enqueue);

  RecentlyUsed<DevicePass, Graph> graphs_{20};  // null: seen once
};

}  // namespace jemm::gpu

// Capture of a stream, and its replay.
#include "gpu/pass_graphs.h"

#include <utility>

namespace jemm::gpu {
namespace {

// What a stream is given while this lives is recorded instead of done.
class Capture {
 public:
  explicit Capture(const Stream& stream) : stream_(stream) {
    cuda_check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal),
               "recording a pass");
  }
  ~Capture() {
    if (!ended_ && cudaStreamEndCapture(stream_.get(), &graph_) != cudaSuccess) {
      cudaGetLastError();  // the error that ended it is under way
    }
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  cudaGraph_t end() {
    ended_ = true;
    cuda_check(cudaStreamEndCapture(stream_.get(), &graph_), "recording a pass");
    return graph_;
  }

 private:
  const Stream& stream_;
  cudaGraph_t graph_ = nullptr;
  bool ended_ = false;
};

}  // namespace

PassGraphs::Graph PassGraphs::record(const Stream& stream, const std::function<void()>& enqueue) {
  Capture capture(stream);
  enqueue();
  cudaGraphExec_t graph = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&graph, capture.end(), 0);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  cuda_check(status, "making a graph of a pass");
  return Graph(graph);
}

void PassGraphs::run(const DevicePass& pass, const Stream& stream,
                     const std::function<void()>& enqueue) {
  Graph* graph = graphs_.find(pass);
  if (graph == nullptr) {
    enqueue();
    graphs_.put(pass, nullptr);
    return;
  }
  if (*graph == nullptr) *graph = record(stream, enqueue);
  if (*graph == nullptr) {
    enqueue();
  } else {
    cuda_check(cudaGraphLaunch(graph->get(), stream.get()), "launching a pass");
  }
}

}  // namespace jemm::gpu

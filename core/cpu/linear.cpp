// Tiles of rows through a weight and its low-rank pair.
#include "cpu/linear.h"

#include <algorithm>
#include <span>
#include <vector>

#include "cpu/elementwise.h"

namespace jemm::cpu {
namespace {

// Rows of W that are widened together: a panel should stay in the second cache beside a block of
// the input. Depends on the layer alone.
std::int64_t panel_rows(const Linear& layer) {
  constexpr std::int64_t kPanelFloats = 256 * 1024;
  return layer.n_in() * 64 <= kPanelFloats ? 64 : layer.n_in() * 48 <= kPanelFloats ? 48 : 32;
}

// Rows [begin, begin + n) of a matrix, widened.
void widen_rows(const Tensor& matrix, std::int64_t begin, std::int64_t n, float* to) {
  const auto cols = static_cast<std::size_t>(matrix.shape[1]);
  const std::size_t row_bytes = cols * dtype_size(matrix.dtype);
  const auto bytes = matrix.data.bytes.subspan(static_cast<std::size_t>(begin) * row_bytes,
                                               static_cast<std::size_t>(n) * row_bytes);
  if (matrix.dtype == DType::kBf16) {
    widen_bf16(reinterpret_cast<const std::uint16_t*>(bytes.data()), to, n * matrix.shape[1]);
  } else {
    widen(matrix.dtype, bytes, {to, static_cast<std::size_t>(n) * cols});
  }
}

// out[row][lane] += bias[row]: [n_rows, 64].
void add_bias(const float* bias, std::int64_t n_rows, float* out) {
  for (std::int64_t row = 0; row < n_rows; ++row) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) out[row * kLanes + lane] += bias[row];
  }
}

// scale (A x) of every layer that has an update, one Tiles a job.
std::vector<Tiles> low_ranks(Context& context, const Tiles& x, std::span<const LinearJob> jobs) {
  std::vector<Tiles> low(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto& lora = jobs[i].layer.lora;
    if (lora) low[i].reshape(x.rows(), lora->a.shape[0]);
  }
  const auto n_jobs = static_cast<std::int64_t>(jobs.size());
  context.pool.parallel_for(n_jobs * x.n_blocks(), [&](std::int64_t task, int worker) {
    const auto i = static_cast<std::size_t>(task % n_jobs);
    const std::int64_t block = task / n_jobs;
    const auto& lora = jobs[i].layer.lora;
    if (!lora) return;
    const std::int64_t rank = low[i].cols();
    float* a = context.worker_floats(worker, rank * x.cols());
    widen_rows(lora->a, 0, rank, a);
    float* out = low[i].block(block);
    context.products.get({rank, x.cols(), kLanes}).run(worker, a, x.block(block), out);
    const auto scale = static_cast<float>(lora->scale);
    for (std::int64_t j = 0; j < rank * kLanes; ++j) out[j] *= scale;
  });
  return low;
}

// Some rows of W (and of B), ready to be multiplied with every block.
class Panel {
 public:
  static std::int64_t floats(const Linear& layer) {
    const std::int64_t rank = layer.lora ? layer.lora->a.shape[0] : 0;
    return panel_rows(layer) * (layer.n_in() + rank);
  }

  Panel(Products& products, const Linear& layer, std::int64_t begin, float* memory)
      : begin_(begin),
        n_(std::min(panel_rows(layer), layer.n_out() - begin)),
        w_(memory),
        b_(memory + n_ * layer.n_in()),
        bias_(layer.bias.empty() ? nullptr : layer.bias.data() + begin),
        product_(products.get({n_, layer.n_in(), kLanes})) {
    widen_rows(layer.weight, begin, n_, w_);
    if (!layer.lora) return;
    widen_rows(layer.lora->b, begin, n_, b_);
    update_ = &products.get({n_, layer.lora->a.shape[0], kLanes, true});
  }

  std::int64_t begin() const { return begin_; }
  std::int64_t n_rows() const { return n_; }

  /// out [n_rows, 64] of one block; `low` as from low_ranks.
  void multiply(int worker, const Tiles& x, const Tiles& low, std::int64_t block,
                float* out) const {
    product_.run(worker, w_, x.block(block), out);
    if (bias_ != nullptr) add_bias(bias_, n_, out);
    if (update_ != nullptr) update_->run(worker, b_, low.block(block), out);
  }

 private:
  std::int64_t begin_, n_;
  float* w_;
  float* b_;
  const float* bias_;  // of these rows, or null
  const Product& product_;
  const Product* update_ = nullptr;
};

std::int64_t n_panels(const Linear& layer) {
  return (layer.n_out() + panel_rows(layer) - 1) / panel_rows(layer);
}

}  // namespace

void apply(Context& context, const Tiles& x, std::initializer_list<LinearJob> list) {
  const std::span jobs(list.begin(), list.size());
  struct Task {
    std::size_t job;
    std::int64_t begin;  // first row of W
  };
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].out.reshape(x.rows(), jobs[i].layer.n_out());
    for (std::int64_t p = 0; p < n_panels(jobs[i].layer); ++p) {
      tasks.push_back({i, p * panel_rows(jobs[i].layer)});
    }
  }
  const std::vector<Tiles> low = low_ranks(context, x, jobs);
  context.pool.parallel_for(static_cast<std::int64_t>(tasks.size()), [&](std::int64_t t,
                                                                         int worker) {
    const Task& task = tasks[static_cast<std::size_t>(t)];
    const LinearJob& job = jobs[task.job];
    float* memory = context.worker_floats(worker, Panel::floats(job.layer));
    const Panel panel(context.products, job.layer, task.begin, memory);
    for (std::int64_t block = 0; block < x.n_blocks(); ++block) {
      panel.multiply(worker, x, low[task.job], block, job.out.block(block) + task.begin * kLanes);
    }
  });
}

void apply_swiglu(Context& context, const Tiles& x, const Linear& gate, const Linear& up,
                  Tiles& out) {
  out.reshape(x.rows(), gate.n_out());
  Tiles unused;
  const LinearJob jobs[] = {{gate, unused}, {up, unused}};
  const std::vector<Tiles> low = low_ranks(context, x, jobs);
  context.pool.parallel_for(n_panels(gate), [&](std::int64_t task, int worker) {
    const std::int64_t outputs = panel_rows(gate) * kLanes;
    float* memory =
        context.worker_floats(worker, Panel::floats(gate) + Panel::floats(up) + outputs);
    const std::int64_t begin = task * panel_rows(gate);
    const Panel gates(context.products, gate, begin, memory);
    const Panel ups(context.products, up, begin, memory + Panel::floats(gate));
    float* ups_out = memory + Panel::floats(gate) + Panel::floats(up);
    for (std::int64_t block = 0; block < x.n_blocks(); ++block) {
      float* act = out.block(block) + begin * kLanes;
      gates.multiply(worker, x, low[0], block, act);
      ups.multiply(worker, x, low[1], block, ups_out);
      silu_multiply(act, ups_out, act, gates.n_rows() * kLanes);
    }
  });
}

}  // namespace jemm::cpu

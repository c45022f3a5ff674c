// The convolution's taps over a chain of rows.
#include "cpu/conv.h"

#include <algorithm>

#include "cpu/vector_math.h"

namespace jemm::cpu {
namespace {

JEMM_CLONES
void add_tap(const float* x, const float* tap, std::int64_t n, float* y) {
  for (std::int64_t c = 0; c < n; ++c) y[c] += x[c] * tap[c];
}

JEMM_CLONES
void silu(float* y, std::int64_t n) {
  for (std::int64_t c = 0; c < n; ++c) y[c] = vector_silu(y[c]);
}

// The row that many places before `row` in its chain, or -1.
std::int64_t row_before(const std::vector<Run>& runs, std::int64_t row, std::int64_t places) {
  auto run = static_cast<std::int64_t>(run_of_row(runs, row));
  while (true) {
    const Run& r = runs[static_cast<std::size_t>(run)];
    if (row - places >= r.row_begin) return row - places;
    if (r.parent < 0) return -1;
    places -= row - r.row_begin + 1;
    run = r.parent;
    const Run& parent = runs[static_cast<std::size_t>(run)];
    row = parent.row_begin + parent.n_rows - 1;
  }
}

}  // namespace

void causal_conv(Context& context, const Matrix& x, std::span<const float> taps,
                 const std::vector<Run>& runs, Matrix& y) {
  constexpr std::int64_t kRowsATask = 16;
  const std::int64_t channels = x.cols();
  const std::int64_t width = static_cast<std::int64_t>(taps.size()) / channels;
  y.reshape(x.rows(), channels);
  const std::int64_t n_tasks = (x.rows() + kRowsATask - 1) / kRowsATask;
  context.pool.parallel_for(n_tasks, [&](std::int64_t task, int) {
    const std::int64_t end = std::min((task + 1) * kRowsATask, x.rows());
    for (std::int64_t row = task * kRowsATask; row < end; ++row) {
      float* out = y.row(row);
      std::fill_n(out, channels, 0.0f);
      for (std::int64_t j = 0; j < width; ++j) {
        const std::int64_t from = row_before(runs, row, width - 1 - j);
        if (from >= 0) add_tap(x.row(from), taps.data() + j * channels, channels, out);
      }
      silu(out, channels);
    }
  });
}

}  // namespace jemm::cpu

// Copies between the layouts.
#include "cpu/tiles.h"

#include <algorithm>
#include <new>

#include "cpu/elementwise.h"
#include "cpu/thread_pool.h"

namespace jemm::cpu {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr std::int64_t kStripe = 256;  // columns that one task transposes

std::int64_t n_stripes(std::int64_t cols) {
  return (cols + kStripe - 1) / kStripe;
}

}  // namespace

void FloatBuffer::Free::operator()(float* p) const {
  ::operator delete[](p, kAlignment);
}

float* FloatBuffer::reserve(std::int64_t n) {
  if (n > capacity_) {
    data_.reset();
    capacity_ = 0;
    data_.reset(new (kAlignment) float[static_cast<std::size_t>(n)]);
    capacity_ = n;
  }
  return data_.get();
}

void Matrix::reshape(std::int64_t rows, std::int64_t cols) {
  rows_ = rows;
  cols_ = cols;
  data_ = buffer_.reserve(rows * cols);
}

void Matrix::join_rows(std::int64_t n) {
  rows_ /= n;
  cols_ *= n;
}

void Tiles::reshape(std::int64_t rows, std::int64_t cols) {
  rows_ = rows;
  cols_ = cols;
  data_ = buffer_.reserve(n_blocks() * cols * kLanes);
}

std::int64_t Tiles::rows_in_block(std::int64_t block) const {
  return std::min(kLanes, rows_ - block * kLanes);
}

void transpose(const float* from, std::int64_t from_stride, std::int64_t n_rows,
               std::int64_t n_cols, float* to, std::int64_t to_stride) {
  constexpr std::int64_t kSquare = 16;  // a square's lines of both sides stay in the first cache
  for (std::int64_t c0 = 0; c0 < n_cols; c0 += kSquare) {
    for (std::int64_t r0 = 0; r0 < n_rows; r0 += kSquare) {
      const std::int64_t c1 = std::min(c0 + kSquare, n_cols);
      const std::int64_t r1 = std::min(r0 + kSquare, n_rows);
      for (std::int64_t c = c0; c < c1; ++c) {
        for (std::int64_t r = r0; r < r1; ++r) to[c * to_stride + r] = from[r * from_stride + c];
      }
    }
  }
}

void to_tiles(ThreadPool& pool, const Matrix& from, Tiles& to) {
  to.reshape(from.rows(), from.cols());
  const std::int64_t stripes = n_stripes(from.cols());
  pool.parallel_for(to.n_blocks() * stripes, [&](std::int64_t task, int) {
    const std::int64_t b = task / stripes, c0 = task % stripes * kStripe;
    const std::int64_t n_cols = std::min(kStripe, from.cols() - c0);
    const std::int64_t n_rows = to.rows_in_block(b);
    float* out = to.block(b) + c0 * kLanes;
    if (n_rows < kLanes) std::fill_n(out, n_cols * kLanes, 0.0f);
    transpose(from.row(b * kLanes) + c0, from.cols(), n_rows, n_cols, out, kLanes);
  });
}

void to_matrix(ThreadPool& pool, const Tiles& from, Matrix& to) {
  to.reshape(from.rows(), from.cols());
  const std::int64_t stripes = n_stripes(from.cols());
  pool.parallel_for(from.n_blocks() * stripes, [&](std::int64_t task, int) {
    const std::int64_t b = task / stripes, c0 = task % stripes * kStripe;
    transpose(from.block(b) + c0 * kLanes, kLanes, std::min(kStripe, from.cols() - c0),
              from.rows_in_block(b), to.row(b * kLanes) + c0, from.cols());
  });
}

void add_to(ThreadPool& pool, Tiles& sum, const Tiles& x) {
  pool.parallel_for(sum.n_blocks(), [&](std::int64_t b, int) {
    add(x.block(b), sum.block(b), sum.cols() * kLanes);
  });
}

void gather_rows(const Tiles& from, std::span<const std::int64_t> rows, Tiles& to) {
  to.reshape(static_cast<std::int64_t>(rows.size()), from.cols());
  std::fill_n(to.block(0), to.n_blocks() * to.cols() * kLanes, 0.0f);
  for (std::int64_t i = 0; i < to.rows(); ++i) {
    const std::int64_t row = rows[static_cast<std::size_t>(i)];
    for (std::int64_t c = 0; c < to.cols(); ++c) to.at(i, c) = from.at(row, c);
  }
}

}  // namespace jemm::cpu

// The two layouts of activations, the ways between them, their sum. Knows no layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace jemm::cpu {

/// Rows that are computed together. Every product of the engine has this many columns, full or
/// not, so that a row's bits do not depend on how many rows share the pass.
inline constexpr std::int64_t kLanes = 64;

/// Memory for floats, aligned to 64 bytes, that only grows. Contents are undefined after growing.
class FloatBuffer {
 public:
  /// At least `n` floats.
  float* reserve(std::int64_t n);

 private:
  struct Free {
    void operator()(float* p) const;
  };
  std::unique_ptr<float[], Free> data_;
  std::int64_t capacity_ = 0;
};

/// [rows, cols] row-major, as the mixers use it.
class Matrix {
 public:
  void reshape(std::int64_t rows, std::int64_t cols);  ///< contents undefined
  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  /// Every n rows become one, side by side; the values stay where they are.
  void join_rows(std::int64_t n);
  float* row(std::int64_t i) { return data_ + i * cols_; }
  const float* row(std::int64_t i) const { return data_ + i * cols_; }

 private:
  FloatBuffer buffer_;
  float* data_ = nullptr;
  std::int64_t rows_ = 0, cols_ = 0;
};

/// [rows / 64][cols][64]: blocks of 64 rows, in each of which a row is a lane of every column.
/// Linear layers read and write it as it is (linear.h), and what sums over a row's columns works
/// on 64 rows at once. The lanes behind the last row hold nothing that a row could see.
class Tiles {
 public:
  void reshape(std::int64_t rows, std::int64_t cols);  ///< contents undefined
  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  std::int64_t n_blocks() const { return (rows_ + kLanes - 1) / kLanes; }
  std::int64_t rows_in_block(std::int64_t block) const;
  float* block(std::int64_t b) { return data_ + b * cols_ * kLanes; }
  const float* block(std::int64_t b) const { return data_ + b * cols_ * kLanes; }
  float& at(std::int64_t row, std::int64_t col) { return block(row / kLanes)[offset(row, col)]; }
  float at(std::int64_t row, std::int64_t col) const {
    return block(row / kLanes)[offset(row, col)];
  }

 private:
  static std::int64_t offset(std::int64_t row, std::int64_t col) {
    return col * kLanes + row % kLanes;
  }
  FloatBuffer buffer_;
  float* data_ = nullptr;
  std::int64_t rows_ = 0, cols_ = 0;
};

class ThreadPool;

/// to[c][r] = from[r][c] for r < n_rows, c < n_cols; leading dimensions in floats.
void transpose(const float* from, std::int64_t from_stride, std::int64_t n_rows,
               std::int64_t n_cols, float* to, std::int64_t to_stride);

/// Same values in the other layout; `to` is reshaped. Lanes without a row become 0.
void to_tiles(ThreadPool& pool, const Matrix& from, Tiles& to);
void to_matrix(ThreadPool& pool, const Tiles& from, Matrix& to);

/// sum += x.
void add_to(ThreadPool& pool, Tiles& sum, const Tiles& x);

/// Row i of `to` is row rows[i] of `from`.
void gather_rows(const Tiles& from, std::span<const std::int64_t> rows, Tiles& to);

}  // namespace jemm::cpu

// The forest of segments: all of a forward that depends on lengths only. Knows no pointers.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace jemm {

/// A position on the three rotary axes (time, height, width); text has the same on all of them.
using Position = std::array<std::int32_t, 3>;

/// A run of token rows that starts from its parent's end: attention sees the ancestors' keys and
/// values, the convolution the parent's last inputs, the delta rule the parent's final state.
struct Segment {
  std::int32_t parent = -1;    ///< index of an earlier segment, or -1 for a root
  std::int64_t row_begin = 0;  ///< first row in the packed matrix
  std::int64_t n_rows = 0;     ///< may be 0
  std::int64_t n_before = 0;   ///< rows of all ancestors together
};

/// Packed rows that show part of an image: they start from its merged vision rows, not from their
/// token's embedding.
struct ImageRows {
  std::int32_t image = -1;     ///< index into the list of images that the forest is run with
  std::int64_t image_row = 0;  ///< the image's row that stands at row_begin
  std::int64_t row_begin = 0;  ///< first row in the packed matrix
  std::int64_t n_rows = 0;
};

/// All segments' rows packed in one matrix, without gaps, in the order of the segments, parents
/// before children. A segment's chain is its ancestors' rows from the root on, then its own.
struct Forest {
  std::vector<Segment> segments;
  std::vector<std::int32_t> token_ids;  // [rows]
  std::vector<Position> positions;      // [rows]
  /// Rows whose logits are wanted: one entry a call of read_last_row, in the order of the calls.
  /// Results come in this order. A row may stand here more than once.
  std::vector<std::int64_t> read_rows;

  std::vector<ImageRows> image_rows;  ///< ascending, without overlap

  std::int64_t n_rows() const { return static_cast<std::int64_t>(token_ids.size()); }

  /// Adds a segment and returns its index. Without explicit positions the rows count up by one on
  /// all three axes, from 0 in a root, else from one past the largest axis of the last row of the
  /// parent's chain (so that text goes on behind an image). `explicit_positions`, when not empty,
  /// has one entry a token. Throws Error(kDevice) for a parent that is not there, a wrong number
  /// of positions, or positions beyond 32 bits.
  std::int32_t add(std::int32_t parent, std::span<const std::int32_t> tokens,
                   std::span<const Position> explicit_positions = {});

  /// Asks for the logits after the last row of the segment's chain: its own last row or, when it
  /// has none, that of its nearest ancestor with rows. Returns the index of the result. Throws
  /// Error(kDevice) when the chain has no rows.
  std::int64_t read_last_row(std::int32_t segment);
};

/// Throws Error(kDevice) when indices are out of order or out of range.
void check_forest(const Forest& forest);

}  // namespace jemm

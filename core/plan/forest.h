// The forest of segments: everything about a forward that depends on lengths only. Knows no pointers.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace jemm {

/// A run of token rows that starts from its parent's end: attention sees the ancestors' keys and
/// values, the convolution the parent's last inputs, the delta rule the parent's final state.
struct Segment {
  std::int32_t parent = -1;    ///< index of an earlier segment, or -1 for a root
  std::int64_t row_begin = 0;  ///< first row in the packed matrix
  std::int64_t n_rows = 0;     ///< may be 0
  std::int64_t n_before = 0;   ///< rows of all ancestors together
};

/// All segments' rows packed in one matrix, parents before children.
struct Forest {
  std::vector<Segment> segments;
  std::vector<std::int32_t> token_ids;                   // [rows]
  std::vector<std::array<std::int32_t, 3>> positions;    // [rows], the three rotary axes
  std::vector<std::int64_t> read_rows;                   // rows whose logits are wanted, ascending

  std::int64_t n_rows() const { return static_cast<std::int64_t>(token_ids.size()); }

  /// Adds a segment and returns its index. Text positions continue the parent's on all three axes
  /// from its last position + 1; `positions`, when not empty, gives them instead.
  std::int32_t add(std::int32_t parent, std::span<const std::int32_t> tokens,
                   std::span<const std::array<std::int32_t, 3>> explicit_positions = {});
  /// Marks the last row of a segment's chain to be read; returns its index in read_rows order of
  /// calls. A segment without rows reads its nearest ancestor's last row.
  void read_last_row(std::int32_t segment);
};

/// Throws Error(kDevice) when indices are out of order or out of range.
void check_forest(const Forest& forest);

}  // namespace jemm

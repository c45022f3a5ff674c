// Adds segments and finds their rows, places and chains.
#include "plan/forest.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace jemm {
namespace {

const Segment& segment_at(const Forest& forest, std::int32_t index) {
  if (index < 0 || static_cast<std::size_t>(index) >= forest.segments.size()) {
    fail(ErrorKind::kDevice, "forest: segment {} of {} does not exist", index,
         forest.segments.size());
  }
  return forest.segments[static_cast<std::size_t>(index)];
}

// Last row of the chain that ends in `segment`, or -1.
std::int64_t last_row(const Forest& forest, std::int32_t segment) {
  while (segment >= 0) {
    const Segment& s = segment_at(forest, segment);
    if (s.n_rows > 0) return s.row_begin + s.n_rows - 1;
    segment = s.parent;
  }
  return -1;
}

std::int64_t next_position(const Forest& forest, std::int32_t parent) {
  const std::int64_t row = last_row(forest, parent);
  if (row < 0) return 0;
  const Position& last = forest.positions[static_cast<std::size_t>(row)];
  return std::int64_t{1} + *std::max_element(last.begin(), last.end());
}

}  // namespace

std::int32_t Forest::add(std::int32_t parent, std::span<const std::int32_t> tokens,
                         std::span<const Position> explicit_positions) {
  if (!explicit_positions.empty() && explicit_positions.size() != tokens.size()) {
    fail(ErrorKind::kDevice, "forest: {} positions for {} tokens", explicit_positions.size(),
         tokens.size());
  }
  Segment segment{.parent = parent,
                  .row_begin = n_rows(),
                  .n_rows = static_cast<std::int64_t>(tokens.size()),
                  .n_before = 0};
  if (parent != -1) {
    const Segment& from = segment_at(*this, parent);
    segment.n_before = from.n_before + from.n_rows;
  }
  if (explicit_positions.empty()) {
    const std::int64_t first = next_position(*this, parent);
    if (first + segment.n_rows > std::numeric_limits<std::int32_t>::max()) {
      fail(ErrorKind::kDevice, "forest: {} rows from position {} need more than 32 bits",
           segment.n_rows, first);
    }
    for (std::int64_t i = 0; i < segment.n_rows; ++i) {
      const auto p = static_cast<std::int32_t>(first + i);
      positions.push_back({p, p, p});
    }
  } else {
    positions.insert(positions.end(), explicit_positions.begin(), explicit_positions.end());
  }
  token_ids.insert(token_ids.end(), tokens.begin(), tokens.end());
  segments.push_back(segment);
  return static_cast<std::int32_t>(segments.size() - 1);
}

std::int64_t Forest::read_last_row(std::int32_t segment) {
  segment_at(*this, segment);
  const std::int64_t row = last_row(*this, segment);
  if (row < 0) fail(ErrorKind::kDevice, "forest: the chain of segment {} has no rows", segment);
  read_rows.push_back(row);
  return static_cast<std::int64_t>(read_rows.size() - 1);
}

namespace {

void check_image_rows(const Forest& forest) {
  std::int64_t end = 0;  // of the entry before
  for (const ImageRows& rows : forest.image_rows) {
    if (rows.image < 0 || rows.image_row < 0 || rows.row_begin < end || rows.n_rows < 0 ||
        rows.n_rows > forest.n_rows() - rows.row_begin) {
      fail(ErrorKind::kDevice, "forest: {} rows from {} cannot show image {} from its row {}",
           rows.n_rows, rows.row_begin, rows.image, rows.image_row);
    }
    end = rows.row_begin + rows.n_rows;
  }
}

}  // namespace

void check_forest(const Forest& forest) {
  if (forest.positions.size() != forest.token_ids.size()) {
    fail(ErrorKind::kDevice, "forest: {} positions for {} rows", forest.positions.size(),
         forest.token_ids.size());
  }
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < forest.segments.size(); ++i) {
    const Segment& s = forest.segments[i];
    if (s.parent < -1 || s.parent >= static_cast<std::int64_t>(i)) {
      fail(ErrorKind::kDevice, "forest: segment {} has parent {}", i, s.parent);
    }
    std::int64_t before = 0;
    if (s.parent >= 0) {
      const Segment& parent = forest.segments[static_cast<std::size_t>(s.parent)];
      before = parent.n_before + parent.n_rows;
    }
    if (s.row_begin != rows || s.n_rows < 0 || s.n_before != before) {
      fail(ErrorKind::kDevice,
           "forest: segment {} has {} rows from {} with {} before; rows should start at {} with {}",
           i, s.n_rows, s.row_begin, s.n_before, rows, before);
    }
    if (s.n_rows > forest.n_rows() - rows) break;  // reported below
    rows += s.n_rows;
  }
  if (rows != forest.n_rows()) {
    fail(ErrorKind::kDevice, "forest: the segments do not cover the {} rows", forest.n_rows());
  }
  for (const Position& p : forest.positions) {
    if (*std::min_element(p.begin(), p.end()) < 0) {
      fail(ErrorKind::kDevice, "forest: negative position");
    }
  }
  check_image_rows(forest);
  for (const std::int64_t row : forest.read_rows) {
    if (row < 0 || row >= rows) {
      fail(ErrorKind::kDevice, "forest: row {} of {} cannot be read", row, rows);
    }
  }
}

}  // namespace jemm

// The three axes.
#include "image/positions.h"

#include <algorithm>

#include "base/error.h"
#include "base/sha256.h"
#include "image/size.h"

namespace jemm {

std::vector<std::array<std::int32_t, 3>> prompt_positions(
    std::span<const std::int32_t> tokens, std::int32_t image_token,
    std::span<const std::array<std::int64_t, 3>> grids) {
  std::vector<std::array<std::int32_t, 3>> positions;
  positions.reserve(tokens.size());
  std::int32_t next = 0;
  std::size_t n_images = 0;
  for (std::size_t t = 0; t < tokens.size(); t = positions.size()) {
    if (tokens[t] != image_token) {
      positions.push_back({next, next, next});
      ++next;
      continue;
    }
    if (n_images == grids.size()) {
      throw Error::request("ValueError", "the text holds an image placeholder of its own");
    }
    const auto [frames, grid_h, grid_w] = grids[n_images++];
    const auto rows = static_cast<std::int32_t>(grid_h / kMergeSize);
    const auto columns = static_cast<std::int32_t>(grid_w / kMergeSize);
    const auto n = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
    const auto run = tokens.subspan(t, std::min(n, tokens.size() - t));
    if (run.size() < n || std::any_of(run.begin(), run.end(),
                                      [=](std::int32_t token) { return token != image_token; })) {
      throw Error::request("ValueError", "too few image placeholders for an image");
    }
    for (std::int32_t row = 0; row < rows; ++row) {
      for (std::int32_t column = 0; column < columns; ++column) {
        positions.push_back({next, next + row, next + column});
      }
    }
    next += std::max(rows, columns);
  }
  if (n_images != grids.size()) {
    throw Error::request("ValueError", "an image has no placeholder in the prompt");
  }
  return positions;
}

std::string positions_sha256(std::span<const std::array<std::int32_t, 3>> positions) {
  std::vector<std::int64_t> axes;
  axes.reserve(3 * positions.size());
  for (std::size_t axis = 0; axis < 3; ++axis) {
    for (const auto& position : positions) axes.push_back(position[axis]);
  }
  return sha256_hex(std::as_bytes(std::span(axes)));
}

}  // namespace jemm

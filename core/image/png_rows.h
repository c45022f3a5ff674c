// The rows of a PNG: inflated and unfiltered, one after the other. Knows no colours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "image/png_chunks.h"

namespace jemm {

/// Inflates the image data of `chunks` piece by piece and stops where Pillow's decoder stops: right
/// behind the last row, so that a checksum in a later piece is never looked at, while one in the
/// same piece is. A stream that ends together with a row ends the image, whatever rows are missing.
class PngRows {
 public:
  /// `chunks` outlives the object.
  explicit PngRows(PngChunks& chunks);
  ~PngRows();
  PngRows(const PngRows&) = delete;
  PngRows& operator=(const PngRows&) = delete;

  /// The next row of `n_bytes` samples (more than 0) whose filters reach back `pixel_bytes`; valid
  /// until the next call. `first` starts an image or a pass: the row above counts as zeros.
  /// Throws ImageFault::kUndecodable for corrupt or missing data and unknown filters.
  std::span<const std::uint8_t> next(std::size_t n_bytes, std::size_t pixel_bytes, bool first);
  /// True when the stream ended with the last row given.
  bool ended() const;

 private:
  void fill(std::size_t n_bytes);

  struct Stream;
  std::unique_ptr<Stream> stream_;
  std::vector<std::uint8_t> row_, above_;  // a filter byte, then the samples
};

}  // namespace jemm

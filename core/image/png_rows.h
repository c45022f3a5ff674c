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
  /// `chunks` outlives the object. `n_total`: bytes of all rows, filter bytes included. A sound
  /// stream of just this length is inflated at once with libdeflate, where that was found: twice as
  /// fast, and the rows that Pillow gets. Everything else takes the way described above.
  PngRows(PngChunks& chunks, std::size_t n_total);
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
  std::uint8_t* take_row(std::size_t n_bytes);
  void fill(std::uint8_t* row, std::size_t n_bytes);

  struct Stream;
  std::unique_ptr<Stream> stream_;
  std::vector<std::uint8_t> whole_;       // all rows, or empty
  std::size_t whole_ofs_ = 0;             // of the next row in it
  std::vector<std::uint8_t> row_, last_;  // a filter byte, then the samples
  std::vector<std::uint8_t> zeros_;
  const std::uint8_t* above_ = nullptr;
};

}  // namespace jemm

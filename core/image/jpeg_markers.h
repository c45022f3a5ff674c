// The segments of a JPEG before its first scan: what a file must have to be accepted, its size, and
// whether it is an MPO. Knows no pixels.
#pragma once

#include <cstdint>
#include <string_view>

namespace jemm {

struct JpegHeader {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  int n_components = 0;  ///< 1, 3 or 4
  bool is_mpo = false;   ///< more than one picture, which Pillow counts as another kind
};

/// Reads the segments as Pillow's JpegImagePlugin does. Throws ImageFault::kUndecodable for
/// anything that it cannot identify: no frame, a sample depth other than 8, 2 or 5 components,
/// segments cut or too short.
JpegHeader read_jpeg_header(std::string_view bytes);

}  // namespace jemm

// The compressed and textual chunks of a PNG, which matter only by their size.
#pragma once

#include <cstdint>
#include <string_view>

namespace jemm {

/// What reading such a chunk costs the limits of PngChunks.
struct PngTextCost {
  std::uint64_t text_length = 0;     ///< characters that count against Pillow's total
  std::uint64_t inflated_bytes = 0;  ///< work done
};

/// iCCP, zTXt, iTXt and tEXt as Pillow reads them. Throws ImageFault::kUndecodable for an unknown
/// compression method, a broken iCCP head, and for over 1 MiB inflated; corrupt data is let pass.
PngTextCost read_png_text(std::string_view type, std::string_view body);

}  // namespace jemm

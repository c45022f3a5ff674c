// JPEG to RGB.
#pragma once

#include <string>
#include <string_view>

#include "image/rgb.h"

namespace jemm {

/// Decodes a file that starts with the JPEG signature: slow integer DCT, fancy upsampling, no
/// rotation, no profile; CMYK and YCCK by K alone, as if inverted. Throws ImageFault, kOtherKind
/// for an MPO. Files with more than 500 scans are refused (kUndecodable), whose decoding would take
/// minutes.
Rgb decode_jpeg(std::string_view bytes);

std::string jpeg_library_version();

}  // namespace jemm

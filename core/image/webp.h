// WebP to RGB.
#pragma once

#include <string>
#include <string_view>

#include "image/rgb.h"

namespace jemm {

/// Decodes the first canvas of a file that starts with the WebP signature: the first frame at its
/// place, black around it, alpha dropped. Throws ImageFault.
Rgb decode_webp(std::string_view bytes);

std::string webp_library_version();

}  // namespace jemm

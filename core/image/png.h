// PNG to RGB.
#pragma once

#include <string>
#include <string_view>

#include "image/rgb.h"

namespace jemm {

/// Decodes a file that starts with the PNG signature. Alpha and tRNS are dropped; palettes are
/// expanded, an index without an entry is black; 16-bit grey is clipped at 255, other 16-bit
/// samples keep their high byte; an APNG gives its default image. No gamma, no profile. Throws
/// ImageFault.
Rgb decode_png(std::string_view bytes);

std::string png_library_version();

}  // namespace jemm

// The two TIFF directories inside a JPEG that can decide whether Pillow opens it: the MP index and
// the resolution tags of EXIF.
#pragma once

#include <cstdint>
#include <string_view>

namespace jemm {

/// Number of pictures that an MP index (the body of an APP2 "MPF" segment behind its name)
/// announces; 1 when it is malformed in a way that makes Pillow read the file as a plain JPEG.
/// Throws ImageFault::kUndecodable when Pillow cannot identify the file at all: too few entries,
/// for one.
std::uint64_t count_mp_pictures(std::string_view index);

/// True when Pillow fails on the resolution of this EXIF block ("Exif\0\0" and a TIFF): beside a
/// resolution unit, an XResolution that is no number but a text or bytes too short to divide.
bool exif_resolution_is_fatal(std::string_view exif);

}  // namespace jemm

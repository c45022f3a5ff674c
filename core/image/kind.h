// The kind of an image file by its first bytes.
#pragma once

#include <string_view>

namespace jemm {

enum class ImageKind {
  kPng,
  kJpeg,  ///< also MPO, which only the MP index of a JPEG can tell
  kWebp,
  kOther,  ///< a kind that Pillow opens and the reference refuses
  kUnknown,
};

/// By signature, as Pillow 12.3.0 recognises kinds; the rest of the file is not looked at.
/// Kinds without a signature (PCD, IM, SPIDER, IPTC, IMT) count as unknown.
ImageKind image_kind(std::string_view bytes);

}  // namespace jemm

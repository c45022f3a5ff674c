// The table of signatures.
#include "image/kind.h"

#include <algorithm>
#include <array>

#include "image/bytes.h"

namespace jemm {
namespace {

using namespace std::string_view_literals;

/// How a kind begins, and the length of the shortest file that Pillow can open.
struct Signature {
  std::size_t offset;
  std::string_view bytes;
  std::size_t least;
};

constexpr std::array kOtherSignatures = {
    Signature{0, "BM"sv, 26}, Signature{0, "\x28\0\0\0"sv, 40},  // BMP without its file header
    // TIFF, with the two misspelt headers that Pillow lets pass, and BigTIFF.
    Signature{0, "MM\0*"sv, 14}, Signature{0, "II*\0"sv, 14}, Signature{0, "MM*\0"sv, 14},
    Signature{0, "II\0*"sv, 14}, Signature{0, "MM\0+"sv, 24}, Signature{0, "II+\0"sv, 24},
    Signature{0, "\0\0\1\0"sv, 22},  // ICO
    Signature{0, "\0\0\2\0"sv, 22},  // CUR
    Signature{0, "icns"sv, 16},
    // JPEG 2000: code stream and file.
    Signature{0, "\xFF\x4F\xFF\x51"sv, 40}, Signature{0, "\0\0\0\x0CjP  \r\n\x87\n"sv, 77},
    Signature{4, "ftypavif"sv, 200}, Signature{4, "ftypavis"sv, 200},
    Signature{0, "8BPS"sv, 26},  // Photoshop
    Signature{0, "qoif"sv, 13}, Signature{0, "DDS "sv, 128}, Signature{0, "BLP1"sv, 28},
    Signature{0, "BLP2"sv, 20}, Signature{0, "\xB1\x68\xDE\x3A"sv, 136},  // DCX
    Signature{0, "\x59\xA6\x6A\x95"sv, 32},                               // Sun raster
    Signature{0, "\x01\xDA"sv, 12},                                       // SGI
    Signature{0, "DanM"sv, 32}, Signature{0, "LinS"sv, 32}, Signature{0, "%!PS"sv, 76},
    Signature{0, "#define"sv, 50},                                  // XBM
    Signature{0, "/* XPM */"sv, 40}, Signature{0, "P7 332"sv, 16},  // XV thumbnail
    Signature{0, "SIMPLE"sv, 80},                                   // FITS
};

bool has_signature(std::string_view bytes, const Signature& signature) {
  return bytes.size() >= signature.least &&
         bytes.substr(signature.offset).starts_with(signature.bytes);
}

/// A GIF counts once its first picture begins: header, palette, extensions, ',', nine bytes, code
/// size.
bool is_gif(std::string_view bytes) {
  if (!bytes.starts_with("GIF87a") && !bytes.starts_with("GIF89a")) return false;
  if (bytes.size() < 13) return false;
  const unsigned flags = byte_at(bytes, 10);
  std::size_t at = 13 + ((flags & 0x80) != 0 ? std::size_t{6} << (flags & 7) : 0);
  while (at < bytes.size() && bytes[at] != ',' && bytes[at] != ';') {
    const bool extension = bytes[at] == '!';
    ++at;
    if (!extension) continue;
    ++at;  // its label
    while (at < bytes.size() && bytes[at] != 0) at += 1u + byte_at(bytes, at);
    ++at;
  }
  return at + 11 <= bytes.size() && bytes[at] == ',';
}

/// "P", a digit or one of "fy", white space: PBM, PGM, PPM, PFM.
bool is_portable_map(std::string_view bytes) {
  return bytes.size() > 8 && bytes[0] == 'P' && "123456fy"sv.find(bytes[1]) != bytes.npos &&
         " \t\n\v\f\r"sv.find(bytes[2]) != bytes.npos;
}

bool is_pcx(std::string_view bytes) {
  return bytes.size() >= 68 && bytes[0] == 10 && "\0\2\3\5"sv.find(bytes[1]) != bytes.npos;
}

/// TGA has no signature; Pillow tries it after all others, by the sense that its header makes.
bool is_targa(std::string_view bytes) {
  if (bytes.size() < 18) return false;
  const auto one_of = [&bytes](std::size_t offset, std::string_view values) {
    return values.find(bytes[offset]) != values.npos;
  };
  const bool sized = u16_little(bytes, 12) > 0 && u16_little(bytes, 14) > 0;
  return sized && one_of(1, "\0\1"sv) && one_of(2, "\1\2\3\11\12\13"sv) &&
         one_of(16, "\1\10\20\30\40"sv);
}

}  // namespace

ImageKind image_kind(std::string_view bytes) {
  if (bytes.starts_with("\x89PNG\r\n\x1A\n")) return ImageKind::kPng;
  if (bytes.starts_with("\xFF\xD8\xFF")) return ImageKind::kJpeg;
  if (bytes.size() >= 16 && bytes.starts_with("RIFF") && bytes.substr(8, 4) == "WEBP") {
    const std::string_view form = bytes.substr(12, 4);
    if (form == "VP8 " || form == "VP8L" || form == "VP8X") return ImageKind::kWebp;
  }
  const bool other = std::any_of(kOtherSignatures.begin(), kOtherSignatures.end(),
                                 [bytes](const Signature& s) { return has_signature(bytes, s); });
  if (other || is_gif(bytes) || is_portable_map(bytes) || is_pcx(bytes) || is_targa(bytes))
    return ImageKind::kOther;
  return ImageKind::kUnknown;
}

}  // namespace jemm

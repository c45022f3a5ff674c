// The marker loop, and what it asks of each segment.
#include "image/jpeg_markers.h"

#include <algorithm>
#include <optional>
#include <string>

#include "image/bytes.h"
#include "image/tiff_directory.h"

namespace jemm {
namespace {

using namespace std::string_view_literals;

enum Marker : unsigned {
  kSof0 = 0xFFC0,
  kDht = 0xFFC4,
  kJpg = 0xFFC8,
  kDac = 0xFFCC,
  kSofLast = 0xFFCF,
  kSos = 0xFFDA,
  kDqt = 0xFFDB,
  kDhp = 0xFFDE,
  kExp = 0xFFDF,
  kApp0 = 0xFFE0,
  kApp1 = 0xFFE1,
  kApp2 = 0xFFE2,
  kApp13 = 0xFFED,
  kApp14 = 0xFFEE,
  kApp15 = 0xFFEF,
  kCom = 0xFFFE,
};

void require(bool condition) {
  if (!condition) throw ImageFault::kUndecodable;
}

class MarkerReader {
 public:
  explicit MarkerReader(std::string_view bytes) : bytes_(bytes) {}

  JpegHeader read();

 private:
  std::string_view segment();
  void read_segment(unsigned marker, std::string_view body);
  void read_frame(std::string_view body);
  void read_application(unsigned marker, std::string_view body);
  void read_jfif(std::string_view body);
  bool is_mpo() const;

  std::string_view bytes_;
  std::size_t position_ = 2;  // at the 0xFF behind SOI
  JpegHeader header_;
  bool has_resolution_ = false;
  std::optional<std::string_view> first_profile_;  // the least of the ICC_PROFILE segments so far
  std::string exif_;
  std::optional<std::string_view> mp_index_;
  bool ultra_hdr_ = false;
};

/// True for SOF0..15, DHT, DAC, SOS, DQT, DNL, DRI, DHP, EXP, APPn, COM: markers with a body.
bool has_body(unsigned marker) {
  if (marker == kJpg) return false;
  return (marker >= kSof0 && marker <= kSofLast) || (marker >= kSos && marker <= kApp15) ||
         marker == kCom;
}

bool is_frame(unsigned marker) {
  return marker == kDhp || (marker >= kSof0 && marker <= kSofLast && marker != kDht &&
                            marker != kJpg && marker != kDac);
}

JpegHeader MarkerReader::read() {
  while (true) {
    while (byte_at(bytes_, position_) != 0xFF) ++position_;
    while (byte_at(bytes_, position_ + 1) == 0xFF) ++position_;
    const unsigned marker = 0xFF00u | byte_at(bytes_, position_ + 1);
    position_ += 2;
    if (marker == 0xFF00) continue;
    require(marker >= kSof0);
    if (has_body(marker)) read_segment(marker, segment());
    if (marker == kSos) break;
  }
  require(header_.n_components != 0 && header_.width > 0 && header_.height > 0);
  require(has_resolution_ || exif_.empty() || !exif_resolution_is_fatal(exif_));
  header_.is_mpo = is_mpo();
  return header_;
}

/// The body of the segment at hand; a length under 2 counts as 2.
std::string_view MarkerReader::segment() {
  const std::size_t length = std::max<std::size_t>(u16_big(bytes_, position_), 2) - 2;
  const std::size_t begin = position_ + 2;
  require(length <= bytes_.size() - begin);
  position_ = begin + length;
  return bytes_.substr(begin, length);
}

void MarkerReader::read_segment(unsigned marker, std::string_view body) {
  if (is_frame(marker)) {
    read_frame(body);
  } else if (marker >= kApp0 && marker <= kApp15) {
    read_application(marker, body);
  } else if (marker == kDqt) {
    while (!body.empty()) {
      const std::size_t length = 1 + 64 * (byte_at(body, 0) < 16 ? 1 : 2);
      require(body.size() >= length);
      body.remove_prefix(length);
    }
  }
}

void MarkerReader::read_frame(std::string_view body) {
  header_.height = u16_big(body, 1);
  header_.width = u16_big(body, 3);
  const int bits = byte_at(body, 0);
  header_.n_components = byte_at(body, 5);
  require(bits == 8);
  require(header_.n_components == 1 || header_.n_components == 3 || header_.n_components == 4);
  require(!first_profile_ || first_profile_->size() >= 14);
  first_profile_.reset();
  require((body.size() - 6) % 3 == 0);
}

void MarkerReader::read_jfif(std::string_view body) {
  require(body.size() >= 7);
  if (body.size() < 12) return;
  const int unit = byte_at(body, 7);
  if (unit == 1 || unit == 2) has_resolution_ = true;
}

/// The image resource blocks of Photoshop. A block that is cut ends the list, except in its name.
void check_photoshop(std::string_view body) {
  std::size_t at = 14;
  while (body.size() >= at && body.substr(at).starts_with("8BIM")) {
    if (body.size() < at + 6) return;
    const unsigned code = u16_big(body, at + 4);
    at += 6;
    at += 1u + byte_at(body, at);
    at += at % 2;
    if (body.size() < at + 4) return;
    const std::size_t length = u32_big(body, at);
    at += 4;
    const std::size_t present = body.size() - at;
    if (code == 0x03ED && std::min(length, present) < 14) return;
    at += length;
    at += at % 2;
  }
}

void MarkerReader::read_application(unsigned marker, std::string_view body) {
  if (marker == kApp1 && body.find(" hdrgm:Version=\""sv) != body.npos) ultra_hdr_ = true;
  if (marker == kApp0 && body.starts_with("JFIF")) {
    read_jfif(body);
  } else if (marker == kApp1 && body.starts_with("Exif\0\0"sv)) {
    exif_ += exif_.empty() ? body : body.substr(6);
  } else if (marker == kApp2 && body.starts_with("ICC_PROFILE\0"sv)) {
    if (!first_profile_ || body < *first_profile_) first_profile_ = body;
  } else if (marker == kApp13 && body.starts_with("Photoshop 3.0\0"sv)) {
    check_photoshop(body);
  } else if (marker == kApp14 && body.starts_with("Adobe")) {
    require(body.size() >= 7);
  } else if (marker == kApp2 && body.starts_with("MPF\0"sv)) {
    mp_index_ = body.substr(4);
  }
}

bool MarkerReader::is_mpo() const {
  return mp_index_ && count_mp_pictures(*mp_index_) > 1 && !ultra_hdr_;
}

}  // namespace

JpegHeader read_jpeg_header(std::string_view bytes) {
  return MarkerReader(bytes).read();
}

}  // namespace jemm

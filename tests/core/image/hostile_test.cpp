// Files made to exhaust: each ends as the reference ends, or refused, within a second and 200 MB.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <ctime>

#include "core/image/image_files.h"

namespace jemm::testing {
namespace {

constexpr const char* kUndecodable = "image 0 could not be decoded";
constexpr const char* kTooLarge = "image 0 exceeds 3145728 pixels";

#if defined(__SANITIZE_ADDRESS__)
constexpr double kSlack = 20;  // instrumented code is slower and its memory is not measured
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr double kSlack = 20;
#else
constexpr double kSlack = 1;
#endif
#elif defined(NDEBUG)
constexpr double kSlack = 1;
#else
constexpr double kSlack = 20;
#endif

double processor_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

long peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/// Decodes within the limits; the peak so far counts, so it may only have grown by so much.
std::string limited(const std::string& file) {
  const double start = processor_seconds();
  const long before = peak_kilobytes();
  const std::string result = decoded(file);
  CHECK(processor_seconds() - start < 1.0 * kSlack);
  if (kSlack == 1) CHECK(peak_kilobytes() - before < 200 * 1000);
  return result.size() < 200 ? result : "decoded " + std::to_string(result.size());
}

TEST_CASE("a PNG that claims gigabytes") {
  CHECK(limited(png(65535, 65535, 16, 6, "")) == kUndecodable);
  CHECK(limited(png(0xFFFFFFFF, 0xFFFFFFFF, 16, 6, "")) == kUndecodable);
  CHECK(limited(png(13000, 13000, 16, 6, "")) == kTooLarge);
}

TEST_CASE("a PNG of few bytes and many pixels") {
  CHECK(limited(png(2048, 1536, 16, 6, std::string((2048 * 8 + 1) * 1536, '\0'))) ==
        "decoded 9437184");
}

TEST_CASE("a PNG that inflates to gigabytes behind its rows") {
  const std::string bomb = deflate(std::string(100 << 20, '\0'));
  CHECK(limited(png_head(1, 1, 8, 0) + png_chunk("IDAT", bomb) + png_chunk("IEND", "")) ==
        bytes({0, 0, 0}));
}

TEST_CASE("many profiles and texts of a mebibyte each") {
  const std::string mebibyte = deflate(std::string(1 << 20, '\0'));
  for (const char* type : {"iCCP", "zTXt"}) {
    std::string chunks;
    for (int i = 0; i < 10000; ++i) chunks += png_chunk(type, bytes({'k', 0, 0}) + mebibyte);
    CHECK(limited(png(1, 1, 8, 0, bytes({0, 0}), chunks)) == kUndecodable);
  }
}

TEST_CASE("a million chunks") {
  std::string chunks;
  for (int i = 0; i < 900000; ++i) chunks += png_chunk("tEXt", "");
  CHECK(limited(png(1, 1, 8, 0, bytes({0, 5}), chunks)) == bytes({5, 5, 5}));
  std::string pieces = png_head(1, 1, 8, 0) + png_chunk("IDAT", deflate(bytes({0, 5})));
  for (int i = 0; i < 900000; ++i) pieces += png_chunk("IDAT", "");
  CHECK(limited(pieces) == bytes({5, 5, 5}));
}

/// A frame of 2048 x 1536 grey pixels, one table of one code, and `n` scans without data.
std::string many_scans(int n) {
  std::string file =
      bytes({0xFF, 0xD8}) + jpeg_segment(0xDB, std::string(1, '\0') + std::string(64, '\1'));
  file += jpeg_segment(0xC2, bytes({8}) + big(1536, 2) + big(2048, 2) + bytes({1, 1, 0x11, 0}));
  for (const int table : {0x00, 0x10}) {
    file += jpeg_segment(0xC4, bytes({table, 1}) + std::string(15, '\0') + bytes({0}));
  }
  file += jpeg_segment(0xDA, bytes({1, 1, 0, 0, 0, 0})) + bytes({0});
  for (int i = 1; i < n; ++i) file += jpeg_segment(0xDA, bytes({1, 1, 0, 1, 63, 0})) + bytes({0});
  return file + bytes({0xFF, 0xD9});
}

TEST_CASE("a JPEG of very many scans") {
  CHECK(limited(many_scans(3)) == "decoded 9437184");
  CHECK(limited(many_scans(300000)) == kUndecodable);
}

TEST_CASE("a JPEG of very many segments") {
  std::string file = bytes({0xFF, 0xD8});
  for (int i = 0; i < 200; ++i) {
    file += jpeg_segment(0xE1, std::string("Exif\0\0", 6) + std::string(60000, 'x'));
    file += jpeg_segment(0xE2, std::string("ICC_PROFILE\0", 12) + std::string(14, '\1'));
  }
  CHECK(limited(file) == kUndecodable);
  CHECK(limited(bytes({0xFF, 0xD8}) + std::string(12 << 20, '\xFF')) == kUndecodable);
}

TEST_CASE("a WebP of 200,000 frames") {
  const std::string red = bytes(
      {0x2F, 0x03, 0xC0, 0x00, 0x00, 0x07, 0x10, 0xFD, 0x8F, 0xFE, 0x07, 0x22, 0xA2, 0xFF, 0x01});
  const std::string frame =
      riff_chunk("ANMF", little(0, 6) + little(3, 3) + little(3, 3) + little(40, 3) + bytes({0}) +
                             riff_chunk("VP8L", red));
  std::string chunks = riff_chunk("VP8X", little(0x02, 4) + little(3, 3) + little(3, 3)) +
                       riff_chunk("ANIM", little(0, 6));
  for (int i = 0; i < 200000; ++i) chunks += frame;
  std::string expected;
  for (int i = 0; i < 16; ++i) expected += bytes({255, 0, 0});
  CHECK(limited(riff(chunks)) == expected);
}

TEST_CASE("a WebP that claims a canvas of gigabytes") {
  const std::string chunks =
      riff_chunk("VP8X", little(0x02, 4) + little(0xFFFFFF, 3) + little(0xFF, 3)) +
      riff_chunk("ANIM", little(0, 6));
  CHECK(limited(riff(chunks)) == kUndecodable);
}

}  // namespace
}  // namespace jemm::testing

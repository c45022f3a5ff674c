// Single files whose right pixels are known by hand or from Pillow 12.3.0; numbers in brackets are
// entries of the log of public bug reports. The full list is golden/image-sweep/chosen.jsonl.
#include <doctest/doctest.h>

#include "core/image/image_files.h"
#include "image/kind.h"

namespace jemm::testing {
namespace {

constexpr const char* kUndecodable = "image 0 could not be decoded";
constexpr const char* kOther = "image 0 is not PNG, JPEG or WebP";

TEST_CASE("alpha and tRNS are dropped, not composited [18]") {
  CHECK(decoded(png(2, 1, 8, 6, bytes({0, 10, 20, 30, 0, 40, 50, 60, 128}))) ==
        bytes({10, 20, 30, 40, 50, 60}));
  CHECK(decoded(png(1, 1, 8, 4, bytes({0, 200, 0}))) == bytes({200, 200, 200}));
  const std::string palette = png_chunk("PLTE", bytes({1, 2, 3, 4, 5, 6}));
  CHECK(decoded(png(2, 1, 8, 3, bytes({0, 0, 1}), palette + png_chunk("tRNS", bytes({0, 9})))) ==
        bytes({1, 2, 3, 4, 5, 6}));
  CHECK(decoded(png(1, 1, 8, 2, bytes({0, 9, 8, 7}),
                    png_chunk("tRNS", bytes({0, 9, 0, 8, 0, 7})))) == bytes({9, 8, 7}));
  CHECK(decoded(png(1, 1, 8, 0, bytes({0, 77}), png_chunk("tRNS", bytes({0, 77})))) ==
        bytes({77, 77, 77}));
}

TEST_CASE("a palette index without an entry is black [18]") {
  const std::string palette = png_chunk("PLTE", bytes({1, 2, 3}));
  CHECK(decoded(png(2, 1, 8, 3, bytes({0, 0, 7}), palette)) == bytes({1, 2, 3, 0, 0, 0}));
  CHECK(decoded(png(1, 1, 8, 3, bytes({0, 7}))) == bytes({0, 0, 0}));
  CHECK(decoded(png(1, 1, 8, 3, bytes({0, 0}), png_chunk("PLTE", std::string(771, 'x')))) ==
        kUndecodable);
}

TEST_CASE("depths other than 8") {
  CHECK(decoded(png(3, 1, 16, 0, bytes({0, 0, 200, 1, 0, 255, 255}))) ==
        bytes({200, 200, 200, 255, 255, 255, 255, 255, 255}));
  CHECK(decoded(png(1, 1, 16, 4, bytes({0, 0x12, 0x34, 0, 0}))) == bytes({0x12, 0x12, 0x12}));
  CHECK(decoded(png(1, 1, 16, 2, bytes({0, 1, 2, 0x7F, 0x80, 255, 255}))) == bytes({1, 0x7F, 255}));
  CHECK(decoded(png(2, 1, 4, 0, bytes({0, 0x1F}))) == bytes({17, 17, 17, 255, 255, 255}));
  CHECK(decoded(png(4, 1, 2, 0, bytes({0, 0x1B}))) ==
        bytes({0, 0, 0, 85, 85, 85, 170, 170, 170, 255, 255, 255}));
  CHECK(decoded(png(2, 1, 1, 0, bytes({0, 0x40}))) == bytes({0, 0, 0, 255, 255, 255}));
}

TEST_CASE("damaged PNG files [19]") {
  const std::string file = png(2, 2, 8, 0, bytes({0, 1, 2, 0, 3, 4}));
  const std::string right = bytes({1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4});
  REQUIRE(decoded(file) == right);
  CHECK(decoded(file.substr(0, file.size() - 12)) == right);  // no IEND
  CHECK(decoded(file.substr(0, file.size() - 5)) == right);   // cut inside IEND
  CHECK(decoded(file + "trailing") == right);
  std::string broken = file;
  broken[file.size() - 13] ^= 1;  // checksum of IDAT
  CHECK(decoded(broken) == right);
  broken = file;
  broken[29] ^= 1;  // checksum of IHDR
  CHECK(decoded(broken) == kUndecodable);
  broken = file;
  broken[file.size() - 17] ^= 1;  // Adler sum
  CHECK(decoded(broken) == kUndecodable);
  CHECK(decoded(png(2, 2, 8, 0, bytes({0, 1, 2, 0, 3}))) == kUndecodable);  // ends inside a row
  // A stream that ends together with a row is whole for Pillow, and the rest black.
  CHECK(decoded(png(2, 2, 8, 0, bytes({0, 1, 2}))) == bytes({1, 1, 1, 2, 2, 2, 0, 0, 0, 0, 0, 0}));
  CHECK(decoded(png(2, 2, 8, 0, bytes({0, 1, 2, 9, 3, 4}))) == kUndecodable);  // filter 9
}

TEST_CASE("claims are checked before pixels exist [19]") {
  CHECK(decoded(png(20000, 20000, 8, 2, "")) == kUndecodable);
  CHECK(decoded(png(13377, 13377, 8, 2, "")) == "image 0 exceeds 3145728 pixels");
  CHECK(decoded(png(2048, 1537, 8, 2, "")) == "image 0 exceeds 3145728 pixels");
  CHECK(decoded(png(0, 5, 8, 2, "")) == kUndecodable);
}

TEST_CASE("metadata changes no pixel [20]") {
  for (const char* type : {"gAMA", "sRGB", "iCCP", "cICP", "eXIf"}) {
    const std::string body = type == std::string("iCCP")   ? bytes({'p', 0, 0}) + deflate("profile")
                             : type == std::string("gAMA") ? big(100000, 4)
                                                           : bytes({0, 1, 2, 3});
    CHECK(decoded(png(1, 1, 8, 2, bytes({0, 100, 150, 200}), png_chunk(type, body))) ==
          bytes({100, 150, 200}));
  }
}

/// 2 x 2 lossless, colour (200, 100, 50), alpha 0: as Pillow writes it with exact, and without.
const std::string kExact = bytes({0x2F, 0x01, 0x40, 0x00, 0x10, 0x07, 0x50, 0xB2, 0x22, 0x57, 0x26,
                                  0x02, 0x11, 0xD1, 0xFF, 0x00});
const std::string kPlain =
    bytes({0x2F, 0x01, 0x40, 0x00, 0x10, 0x07, 0x10, 0x11, 0x11, 0x88, 0x88, 0xFE, 0x07});
/// 4 x 4 lossless, red.
const std::string kRed = bytes(
    {0x2F, 0x03, 0xC0, 0x00, 0x00, 0x07, 0x10, 0xFD, 0x8F, 0xFE, 0x07, 0x22, 0xA2, 0xFF, 0x01});

std::string repeated(const std::string& pixel, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += pixel;
  return out;
}

TEST_CASE("WebP keeps hidden colour [21]") {
  CHECK(decoded(riff(riff_chunk("VP8L", kExact))) == repeated(bytes({200, 100, 50}), 4));
  CHECK(decoded(riff(riff_chunk("VP8L", kPlain))) == repeated(bytes({0, 0, 0}), 4));
}

TEST_CASE("WebP: outside a small first frame all is black, whatever the background [21]") {
  const std::string frame =
      little(1, 3) + little(0, 3) + little(3, 3) + little(3, 3) + little(40, 3) + bytes({0});
  const std::string file = riff(riff_chunk("VP8X", little(0x02, 4) + little(5, 3) + little(4, 3)) +
                                riff_chunk("ANIM", little(0xFF336699, 4) + little(0, 2)) +
                                riff_chunk("ANMF", frame + riff_chunk("VP8L", kRed)));
  std::string expected;
  for (int y = 0; y < 5; ++y) {
    for (int x = 0; x < 6; ++x) expected += x >= 2 && y < 4 ? bytes({255, 0, 0}) : bytes({0, 0, 0});
  }
  CHECK(decoded(file) == expected);
  CHECK(decoded(file.substr(0, file.size() - 1)) == kUndecodable);
  CHECK(decoded(file + "trailing") == expected);
}

TEST_CASE("kinds by content") {
  CHECK(decoded("") == kUndecodable);
  CHECK(decoded("hello") == kUndecodable);
  CHECK(decoded("GIF89a") == kUndecodable);  // no picture begins
  CHECK(decoded("P6\n1 1\n255\nabc") == kOther);
  CHECK(decoded(std::string("BM") + std::string(60, '\0')) == kOther);
  CHECK(decoded(bytes({0xFF, 0xD8, 0xFF})) == kUndecodable);
  CHECK(image_kind("\xFF\xD8\xFF") == ImageKind::kJpeg);
  CHECK(image_kind("RIFF....WEBPVP9 ....") == ImageKind::kUnknown);
}

}  // namespace
}  // namespace jemm::testing

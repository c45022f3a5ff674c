// Lists of numbers and image sizes from the command line.
#include <doctest/doctest.h>

#include <vector>

#include "base/error.h"
#include "bench/sweep.h"

namespace jemm {
namespace {

using Numbers = std::vector<std::int64_t>;

Numbers sweep(std::string_view text) {
  return parse_sweep(text, {.option = "--tokens", .lowest = 1, .highest = 8192});
}

}  // namespace

TEST_CASE("lists, ranges, steps and factors") {
  CHECK(sweep("98,278,512") == Numbers{98, 278, 512});
  CHECK(sweep("64-512+64") == Numbers{64, 128, 192, 256, 320, 384, 448, 512});
  CHECK(sweep("64-4096*2") == Numbers{64, 128, 256, 512, 1024, 2048, 4096});
  CHECK(sweep("3-6") == Numbers{3, 4, 5, 6});
  CHECK(sweep("10-25*2,20,7") == Numbers{10, 20, 7});
  CHECK(sweep("5-5+1") == Numbers{5});
}

TEST_CASE("what is no sweep") {
  for (const char* text : {"",
                           ",",
                           "1,",
                           "x",
                           "0",
                           "-1",
                           "8193",
                           "5-",
                           "-5",
                           "5-3",
                           "1-9*1",
                           "1-9*0",
                           "1-9+0",
                           "1-9*",
                           "1-9+2+2",
                           "1.5",
                           "1e3",
                           " 1",
                           "0-9",
                           "64-9223372036854775807*8000",
                           "99999999999999999999",
                           "+5",
                           "1-4*-2"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(sweep(text), Error);
  }
  CHECK_THROWS_WITH_AS(sweep("1-8192"), "--tokens 1-8192 has more than 64 values", Error);
}

TEST_CASE("image sizes") {
  CHECK(parse_images("0,640x480,1280x800x2,640x480x1") ==
        std::vector<ImageSet>{{}, {640, 480, 1}, {1280, 800, 2}});
  CHECK(image_set_text({}) == "0");
  CHECK(image_set_text({640, 480, 1}) == "640x480");
  CHECK(image_set_text({1280, 800, 2}) == "1280x800x2");
  for (const char* text : {"", "640", "640x", "x480", "0x5", "5x0", "640x480x0", "640x480x5",
                           "640x480x1x1", "9000x10", "8192x8192", "640X480", "-1x5"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_images(text), Error);
  }
}

}  // namespace jemm

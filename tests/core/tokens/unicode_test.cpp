// Character classes and NFC over all code points, against what the reference's library answered.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

#include "base/sha256.h"
#include "base/utf8.h"
#include "core/tokens/support.h"
#include "tokens/check_utf8.h"
#include "tokens/nfc.h"
#include "tokens/unicode_classes.h"

namespace jemm::test {
namespace {

constexpr const char* kGolden = JEMM_SOURCE_DIR "/golden/tokens/";

std::string nfc(const std::string& text) {
  std::string scratch;
  return std::string(to_nfc(text, scratch));
}

}  // namespace

TEST_CASE("every code point has the class that the reference's patterns match") {
  const auto golden = nlohmann::json::parse(read(std::string(kGolden) + "classes.json"));
  std::vector<std::uint8_t> expected(0x110000, 0);
  const auto mark = [&](const char* name, std::uint8_t bit) {
    for (const auto& run : golden[name]) {
      for (std::size_t c = run[0]; c <= run[1]; ++c) expected[c] |= bit;
    }
  };
  mark("letter", kLetter);
  mark("mark", kMark);
  mark("number", kNumber);
  mark("space", kSpace);
  const auto& classes = character_classes();
  const auto differs = std::mismatch(expected.begin(), expected.end(), classes.begin()).first;
  CHECK_MESSAGE(differs == expected.end(), "first at code point " << differs - expected.begin());
}

TEST_CASE("NFC is the reference's") {
  const auto golden = nlohmann::json::parse(read(std::string(kGolden) + "nfc.json"));
  CHECK(golden["cases"].size() > 2000);
  for (const auto& pair : golden["cases"]) {
    const auto text = pair[0].get<std::string>();
    CAPTURE(text);
    CHECK(nfc(text) == pair[1].get<std::string>());
    CHECK(nfc(fmt::format("\n{}\n", text)) == fmt::format("\n{}\n", pair[1].get<std::string>()));
  }
  Sha256 sha;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (is_surrogate(c)) continue;
    std::string text;
    append_utf8(text, c);
    if (c != 0) sha.update(std::string_view("\0", 1));
    sha.update(nfc(text));
  }
  CHECK(sha.hex() == golden["every_code_point_sha256"].get<std::string>());
}

TEST_CASE("text that passes the quick check is not copied") {
  std::string scratch;
  const std::string text = "plain \xC3\xA9 \xE0\xA4\x95\xE0\xA4\xBF e\xCC\xB5\xCC\x96 \xED\x95\x9C";
  CHECK(to_nfc(text, scratch).data() == text.data());
}

TEST_CASE("a long run of marks in the wrong order is sorted without quadratic work") {
  std::string text = "e", sorted = "e";
  for (int i = 0; i < 100000; ++i) text += "\xCC\x84\xCC\xA7";  // U+0304 (230), U+0327 (202)
  for (int i = 0; i < 100000; ++i) sorted += "\xCC\xA7";
  for (int i = 0; i < 100000; ++i) sorted += "\xCC\x84";
  sorted.replace(0, 3, "\xC8\xA9");  // the first pair composes to U+0229
  const auto start = std::chrono::steady_clock::now();
  CHECK(nfc(text) == sorted);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(2));
}

TEST_CASE("the first fault of text is found where it is") {
  const auto fault = [](std::string_view text) {
    const TextFault found = find_text_fault(text);
    return std::pair(found.kind, found.offset);
  };
  CHECK(fault("plain \xC3\xA9\xE4\xB8\xAD\xF0\x9F\x99\x82").first == TextFault::kNone);
  CHECK(fault("12345678\xED\xA0\x80") == std::pair(TextFault::kSurrogate, std::size_t{8}));
  CHECK(fault("\xED\xBF\xBFx") == std::pair(TextFault::kSurrogate, std::size_t{0}));
  CHECK(fault("\xED\x9F\xBF").first == TextFault::kNone);
  for (const char* bad :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xC3", "\xE0\x9F\xBF", "\xE4\xB8", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3(", "\xE4(\xAD"}) {
    CAPTURE(bad);
    CHECK(fault(fmt::format("ab{}", bad)) == std::pair(TextFault::kInvalid, std::size_t{2}));
  }
}

TEST_CASE("every code point but the surrogates passes the check") {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    std::string text;
    append_utf8(text, c);
    const auto expected = is_surrogate(c) ? TextFault::kSurrogate : TextFault::kNone;
    if (find_text_fault(text).kind != expected) FAIL_CHECK("U+" << std::hex << std::uint32_t{c});
  }
}

}  // namespace jemm::test

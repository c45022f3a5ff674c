// Text helpers, hashing and files of core/base.
#include <doctest/doctest.h>

#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/utf8.h"

namespace jemm {

TEST_CASE("every code point survives UTF-8, surrogates included") {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    std::string text;
    append_utf8(text, c);
    std::size_t offset = 0;
    REQUIRE(next_code_point(text, offset) == c);
    REQUIRE(offset == text.size());
    Utf8Fault fault;
    REQUIRE(code_point_length(text, fault) == text.size());
  }
}

TEST_CASE("code points are counted and cut, not bytes") {
  const std::string text = "a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x99\x82z";
  CHECK(count_code_points(text) == 5);
  CHECK(first_code_points(text, 3) == "a\xC3\xA9\xE4\xB8\xAD");
  CHECK(first_code_points(text, 99) == text);
}

TEST_CASE("UTF-8 that other programs take holds no surrogates") {
  CHECK(is_utf8(""));
  CHECK(is_utf8("a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x99\x82"));
  for (const char* bytes : {"\xED\xA0\x80", "a\xFF", "\xC3", "\xF5\x80\x80\x80", "\xC0\x80"}) {
    CHECK_FALSE(is_utf8(bytes));
  }
}

TEST_CASE("a refusal keeps as much of its detail as the reference gives") {
  std::string detail, kept;
  for (int i = 0; i < 300; ++i) detail += "\xC3\xA9";
  for (int i = 0; i < 200; ++i) kept += "\xC3\xA9";
  CHECK(Error::request("ValueError", detail).what() == kept);
  CHECK(Error::request("ValueError", "short").what() == std::string("short"));
}

TEST_CASE("SHA-256 of the standard's examples") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(Sha256().update("a").update("bc").hex() == sha256_hex("abc"));
}

TEST_CASE("a missing file and a directory are named errors") {
  for (const char* path : {"/nonexistent/x", "/"}) {
    try {
      map_file(path);
      FAIL("no error for " << path);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kIo);
      CHECK(std::string(error.what()).find(path) != std::string::npos);
    }
  }
}

}  // namespace jemm

// Data URLs and base64, by hand and against CPython (golden/tools/make_python_json.py).
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "image/envelope.h"

namespace jemm {
namespace {

constexpr std::string_view kUndecodable = "image 3 could not be decoded";
constexpr std::string_view kNotAscii = "string argument should contain only ASCII characters";
constexpr std::string_view kNotBase64Url = "image 3 is not a base64 data URL";

/// The detail of the refusal of `text` as image 3.
std::string refusal(std::string_view text) {
  try {
    decode_envelope(3, text);
  } catch (const Error& error) {
    CHECK(error.type() == "ValueError");
    return error.what();
  }
  return "accepted";
}

std::size_t check_file(const std::string& path) {
  std::ifstream file(path);
  REQUIRE_MESSAGE(file.good(), "cannot open " << path);
  std::size_t count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    CAPTURE(line);
    const nlohmann::json expected = nlohmann::json::parse(line);
    const std::string input = decode_envelope(0, expected["input"].get<std::string>());
    if (expected.contains("error")) {
      CHECK(refusal(input) == (expected["error"] == "Error" ? kUndecodable : kNotAscii));
    } else {
      CHECK(decode_envelope(0, input) ==
            decode_envelope(0, expected["output"].get<std::string>()));
    }
  }
  return count;
}

}  // namespace

TEST_CASE("strict base64") {
  for (const std::string text : {"aGk=", " aGk= ", "a G\nk=", "aG\tk\r=", "aGk\xE2\x80\x83=",
                           "\x1C" "aGk="}) {
    CAPTURE(text);
    CHECK(decode_envelope(0, text) == "hi");
  }
  CHECK(decode_envelope(0, "aGkx") == "hi1");
  CHECK(decode_envelope(0, "aGkx=") == "hi1");
  CHECK(decode_envelope(0, "aGkx=======") == "hi1");
  CHECK(decode_envelope(0, "+/+/") == "\xFB\xFF\xBF");
  CHECK(decode_envelope(0, "") == "");
  CHECK(decode_envelope(0, "AAAA") == std::string(3, '\0'));
  for (const std::string text :
       {"a", "a===", "aG", "aGk", "aG=", "aGk==", "=aGk=", "=", "====", "aGk=aGk=", "aGkx=aGkx",
        "aG=k", "a-_k", "aGk=!", " data:;base64,aGk="}) {
    CAPTURE(text);
    CHECK(refusal(text) == kUndecodable);
  }
  CHECK(refusal(std::string_view("aGk=\0", 5)) == kUndecodable);
  for (const std::string text :
       {"aGk=\xC3\xA9", "!\xC3\xA9", "\xE2\x80\x8B" "aGk=", "\xED\xA0\x80"}) {
    CAPTURE(text);
    CHECK(refusal(text) == kNotAscii);
  }
}

TEST_CASE("data URLs") {
  CHECK(decode_envelope(0, "data:image/png;base64,aGk=") == "hi");
  CHECK(decode_envelope(0, "data:;base64, aG k=") == "hi");
  CHECK(decode_envelope(0, "data:x\xC3\xA9;base64,aGk=") == "hi");
  CHECK(decode_envelope(0, "data:image/png;base64") == "");
  CHECK(decode_envelope(0, "data:image/png;base64,") == "");
  CHECK(refusal("data:;base64,aGk=,aGk=") == kUndecodable);
  CHECK(refusal("DATA:;base64,aGk=") == kUndecodable);
  for (const std::string text : {"data:", "data:,aGk=", "data:image/png;BASE64,aGk=",
                           "data:image/png;base64;x,aGk=", "data:image/png;base64 ,aGk=",
                           "data:image/png,;base64,aGk="}) {
    CAPTURE(text);
    CHECK(refusal(text) == kNotBase64Url);
  }
}

TEST_CASE("base64 cases of CPython") {
  CHECK(check_file(JEMM_SOURCE_DIR "/golden/python-json/base64.jsonl") > 60);
}

TEST_SUITE("extra") {
  TEST_CASE("more base64 cases of CPython") {
    const char* root = std::getenv("JEMM_EXTRA_GOLDEN");
    if (root == nullptr) {
      MESSAGE("JEMM_EXTRA_GOLDEN is not set");
      return;
    }
    const std::string path = std::string(root) + "/python-json/base64.jsonl";
    if (!std::ifstream(path).good()) {
      MESSAGE(path << " is not there");
      return;
    }
    MESSAGE(check_file(path) << " cases");
  }
}

}  // namespace jemm

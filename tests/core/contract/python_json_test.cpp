// JSON reading and writing against CPython 3.12.1 (golden/tools/make_python_json.py). The expected
// values are read by another JSON library, so that an error of ours cannot hide on both sides.
#include <doctest/doctest.h>

#include <clocale>
#include <cstdlib>
#include <fstream>
#include <locale>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/python_space.h"
#include "base/sha256.h"
#include "contract/json.h"
#include "contract/python_text.h"
#include "image/envelope.h"

namespace jemm {
namespace {

using nlohmann::json;

/// A text field, or its _base64 form.
std::string text_of(const json& object, const std::string& key) {
  if (object.contains(key)) return object[key];
  return decode_envelope(0, object.at(key + "_base64").get<std::string>());
}

void check_case(const json& expected) {
  const std::string input = decode_envelope(0, expected["input"].get<std::string>());
  try {
    const JsonDocument document = parse_json(decode_json_bytes(input));
    const JsonValue root = document.root();
    REQUIRE(!expected.contains("error"));
    CHECK(compact_json(root) == text_of(expected, "dump"));
    CHECK(python_repr(root) == text_of(expected, "repr"));
    CHECK(python_str(root) == text_of(expected, "str"));
    CHECK(flat(python_str(root)) == text_of(expected, "flat"));
    CHECK(strip(python_str(root)) == text_of(expected, "strip"));
  } catch (const Error& error) {
    REQUIRE_MESSAGE(expected.contains("error"), error.what());
    CHECK(error.type() == expected["error"].get<std::string>());
    CHECK(std::string(error.what()) == expected["detail"].get<std::string>());
  }
}

std::size_t check_file(const std::string& path) {
  std::ifstream file(path);
  REQUIRE_MESSAGE(file.good(), "cannot open " << path);
  std::size_t count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    const json expected = json::parse(line);
    CAPTURE(expected["input"].get<std::string>());
    check_case(expected);
  }
  return count;
}

struct CommaPoint : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

}  // namespace

TEST_CASE("JSON cases of CPython") {
  CHECK(check_file(JEMM_SOURCE_DIR "/golden/python-json/cases.jsonl") > 400);
}

TEST_CASE("JSON cases of CPython where the decimal point is a comma") {
  const std::locale before = std::locale::global(std::locale(std::locale(), new CommaPoint));
  const char* found = nullptr;
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "nl_NL.UTF-8", "da_DK.UTF-8"}) {
    if (found == nullptr) found = std::setlocale(LC_ALL, name);
  }
  MESSAGE("C locale: " << std::string(found == nullptr ? "no such locale installed, C++ locale only"
                                                       : found));
  check_file(JEMM_SOURCE_DIR "/golden/python-json/cases.jsonl");
  std::locale::global(before);
  std::setlocale(LC_ALL, "C");
}

TEST_CASE("printable and white space over every code point") {
  std::ifstream file(JEMM_SOURCE_DIR "/golden/python-json/code_points.json");
  const json expected = json::parse(file);
  std::string printable;
  std::string space;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    printable += is_printable(c) ? '\1' : '\0';
    space += is_python_space(c) ? '\1' : '\0';
  }
  CHECK(sha256_hex(printable) == expected["isprintable_sha256"].get<std::string>());
  CHECK(sha256_hex(space) == expected["isspace_sha256"].get<std::string>());
}

TEST_SUITE("extra") {
  TEST_CASE("more JSON cases of CPython") {
    const char* root = std::getenv("JEMM_EXTRA_GOLDEN");
    if (root == nullptr) {
      MESSAGE("JEMM_EXTRA_GOLDEN is not set");
      return;
    }
    const std::string path = std::string(root) + "/python-json/cases.jsonl";
    if (!std::ifstream(path).good()) {
      MESSAGE(path << " is not there");
      return;
    }
    MESSAGE(check_file(path) << " cases");
  }
}

}  // namespace jemm

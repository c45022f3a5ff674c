// The JSON walker: what it reads, and that what it does not read is an error.
#include <doctest/doctest.h>

#include "core/tokens/support.h"
#include "tokens/json_walker.h"

namespace jemm::test {
namespace {

std::string string_of(std::string_view text) {
  JsonWalker reader(text, "x");
  std::string value(reader.string());
  reader.end();
  return value;
}

std::string repeat(std::string_view unit, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += unit;
  return text;
}

}  // namespace

TEST_CASE("strings and their escapes") {
  CHECK(string_of("\"\"").empty());
  CHECK(string_of(R"("a\"\\\/\b\f\n\r\tz")") == "a\"\\/\b\f\n\r\tz");
  CHECK(string_of(R"("\u0041\u00e9\u4E2d\ud83d\ude42")") == "A\u00E9\u4E2D\U0001F642");
  CHECK(string_of(R"("\u0000")") == std::string(1, '\0'));
  CHECK(string_of(" \"\u0120the\" ") == "\u0120the");
  for (const char* bad : {"\"", "\"a", "\"\\", "\"\\\"", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"",
                          "\"\\ud83d\"", "\"\\ude42\"", "\"\\ud83d\\u0041\"", "\"\\ud83d\\n\"",
                          "\"\t\"", "\"a\" b", "a", "", "\"\xFF\""}) {
    CAPTURE(bad);
    error_of(ErrorKind::kInput, [&] { string_of(bad); });
  }
}

TEST_CASE("ids are whole numbers below 2^31") {
  const auto id_of = [](std::string_view text) {
    JsonWalker reader(text, "x");
    const std::int32_t id = reader.id();
    reader.end();
    return id;
  };
  CHECK(id_of("0") == 0);
  CHECK(id_of(" 2147483647 ") == 2147483647);
  for (const char* bad : {"", "-1", "01", "1.0", "1e3", "2147483648", "99999999999999999999999",
                          "\"1\"", "null", "1 2"}) {
    CAPTURE(bad);
    error_of(ErrorKind::kInput, [&] { id_of(bad); });
  }
}

TEST_CASE("objects and arrays are walked in order") {
  std::string seen;
  JsonWalker reader(R"( { "a" : [ 1 , 2 ] , "b" : { } , "c" : [ ] , "a" : "x" } )", "x");
  reader.object([&](std::string_view key) {
    seen += key;
    if (key == "b") {
      reader.object([](std::string_view) { FAIL("no members"); });
    } else if (reader.peek() == '[') {
      reader.array([&] { seen += std::to_string(reader.id()); });
    } else {
      seen += reader.string();
    }
  });
  reader.end();
  CHECK(seen == "a12bcax");
  for (const char* bad : {"{", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "{\"a\":1,}", "{1:1}",
                          "{\"a\" 1}", "[]", "{\"a\":1]", "{} {}"}) {
    CAPTURE(bad);
    error_of(ErrorKind::kInput, [&] {
      JsonWalker walker(bad, "x");
      walker.object([&](std::string_view) { walker.id(); });
      walker.end();
    });
  }
}

TEST_CASE("raw gives a value's text and leaves the rest") {
  JsonWalker reader(R"([{"a":["]"]}, "\"]", -1.5e3 , null,[[]]])", "x");
  std::vector<std::string> raw;
  reader.array([&] { raw.emplace_back(reader.raw()); });
  reader.end();
  CHECK(raw == std::vector<std::string>{R"({"a":["]"]})", R"("\"]")", "-1.5e3", "null", "[[]]"});
}

TEST_CASE("depth is limited, and no deep stack is needed below the limit") {
  CHECK(parse_small_json(repeat("[", 900) + repeat("]", 900), "x").is_array());
  CHECK(error_of(ErrorKind::kInput, [] {
          parse_small_json(repeat("[", 901) + repeat("]", 901), "x");
        }).find("900") != std::string::npos);
  error_of(ErrorKind::kInput, [] { parse_small_json(repeat("[", 1000000), "x"); });
  for (const char* bad : {"", "{", "]", "{]", "[1,]", "nul", "1 2", "{\"a\":}", ","}) {
    CAPTURE(bad);
    CHECK(error_of(ErrorKind::kInput, [&] {
            parse_small_json(bad, "name.json");
          }).find("name.json") == 0);
  }
}

}  // namespace jemm::test

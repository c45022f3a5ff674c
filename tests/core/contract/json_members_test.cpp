// Cutting JSON objects and lists into the texts of their members.
#include <doctest/doctest.h>

#include "base/error.h"
#include "contract/json_members.h"

namespace jemm {

TEST_CASE("members of an object with every kind of value") {
  const auto members = json_members(
      "\xEF\xBB\xBF { \"a\" : 1 , \"b\":\"x,\\\"}\" ,\"\\u0063\":{\"d\":[1,{}],\"e\":\"]\"}, "
      "\"a\":[ ] } ");
  REQUIRE(members.size() == 4);
  CHECK(members[0].key == "a");
  CHECK(members[0].value == "1");
  CHECK(members[1].value == "\"x,\\\"}\"");
  CHECK(members[2].key == "c");
  CHECK(members[2].value == "{\"d\":[1,{}],\"e\":\"]\"}");
  CHECK(members[3].key == "a");
  CHECK(members[3].value == "[ ]");
  CHECK(json_members("{}").empty());
  CHECK(json_members(" { } ").empty());
}

TEST_CASE("elements of a list") {
  CHECK(json_elements("[]").empty());
  const auto elements = json_elements("[\"a\", 2 ,[3,4]]");
  REQUIRE(elements.size() == 3);
  CHECK(elements[1] == "2");
  CHECK(elements[2] == "[3,4]");
}

TEST_CASE("texts without the form of a container are refused") {
  for (const char* text : {"", " ", "[", "{", "1", "{\"a\"}", "{\"a\":}", "{\"a\":1", "{\"a\":1}}",
                           "{\"a\":1} x", "{,}", "{\"a\":1,}", "{a:1}", "{\"a:1}", "{\"a\":\"\\",
                           "[1]", "{\"a\":1:2}", "{\"\xFF\":1}"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(json_members(text), Error);
  }
  for (const char* text : {"", "[1", "[1,]", "[,1]", "{}", "[1]]", "[1:2]"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(json_elements(text), Error);
  }
}

TEST_CASE("string values") {
  CHECK(json_string_value("\"a\\n\\ud83d\\ude00\"") == "a\n\xF0\x9F\x98\x80");
  CHECK_THROWS_AS(json_string_value("1"), Error);
  CHECK_THROWS_AS(json_string_value("\"a"), Error);
}

}  // namespace jemm

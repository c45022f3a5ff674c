// JSON values, errors and limits by hand. The values were checked on CPython 3.12.1.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.h"
#include "contract/answer.h"
#include "contract/json.h"
#include "contract/python_text.h"
#include "core/contract/small_stack.h"

namespace jemm {
namespace {

std::string dump(std::string_view text) {
  const JsonDocument document = parse_json(text);
  return compact_json(document.root());
}

std::string str(std::string_view text) {
  const JsonDocument document = parse_json(text);
  return python_str(document.root());
}

/// "Type: detail" of the refusal of some bytes, or "accepted".
std::string refusal(std::string_view bytes) {
  try {
    parse_json(decode_json_bytes(bytes));
  } catch (const Error& error) {
    return error.type() + ": " + error.what();
  }
  return "accepted";
}

bool is_syntax_error(std::string_view text) {
  return refusal(text).starts_with("JSONDecodeError: ");
}

std::string nested(std::size_t depth, std::string_view open, std::string_view close) {
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += open;
  for (std::size_t i = 0; i < depth; ++i) text += close;
  return text;
}

}  // namespace

TEST_CASE("byte order marks, blanks and line ends") {
  CHECK(refusal("\xEF\xBB\xBF{}") == "accepted");
  CHECK(refusal("\xEF\xBB\xBF\xEF\xBB\xBF{}") ==
        "JSONDecodeError: Expecting value: line 1 column 1 (char 0)");
  CHECK(refusal(" \t\r\n{}\r\n") == "accepted");
  CHECK(refusal("[1,\r2]") == "accepted");
  CHECK(refusal("\x0B{}") == "JSONDecodeError: Expecting value: line 1 column 1 (char 0)");
  CHECK(refusal("\xC2\xA0{}") == "JSONDecodeError: Expecting value: line 1 column 1 (char 0)");
  CHECK(refusal("{} {}") == "JSONDecodeError: Extra data: line 1 column 4 (char 3)");
  CHECK(refusal("") == "JSONDecodeError: Expecting value: line 1 column 1 (char 0)");
  CHECK(refusal("\"a\tb\"") ==
        "JSONDecodeError: Invalid control character at: line 1 column 3 (char 2)");
  CHECK(refusal("\"a\nb\"") ==
        "JSONDecodeError: Invalid control character at: line 1 column 3 (char 2)");
  CHECK(refusal("\"\xE2\x80\xA8\xC2\x85\"") == "accepted");
}

TEST_CASE("an error is placed by line, column and code point") {
  CHECK(refusal("[\n\"\xC3\xA9\xF0\x9F\x99\x82\",\n  x]") ==
        "JSONDecodeError: Expecting value: line 3 column 3 (char 10)");
  CHECK(refusal("[1\r2]") == "JSONDecodeError: Expecting ',' delimiter: line 1 column 4 (char 3)");
}

TEST_CASE("invalid UTF-8 is refused as CPython words it") {
  const std::string head = "UnicodeDecodeError: 'utf-8' codec can't decode ";
  CHECK(refusal("\"\xFF\"") == head + "byte 0xff in position 1: invalid start byte");
  CHECK(refusal("\"\xC3(\"") == head + "byte 0xc3 in position 1: invalid continuation byte");
  CHECK(refusal("\xEF\xBB\xBF\"\xE2\x82(\"") ==
        head + "bytes in position 1-2: invalid continuation byte");
  CHECK(refusal("\"\xF0\x9F\x99") == head + "bytes in position 1-3: unexpected end of data");
  CHECK(refusal("\"\xED\xA0") == head + "byte 0xed in position 1: invalid continuation byte");
  CHECK(refusal("\"\xF4\x90\x80\x80\"") ==
        head + "byte 0xf4 in position 1: invalid continuation byte");
}

TEST_CASE("integers keep every digit") {
  for (const std::string text : {"18446744073709551617", "9007199254740993", "-9223372036854775809",
                                 "0", "12345678901234567890123456789012345678901234567890"}) {
    CHECK(dump(text) == text);
    CHECK(str(text) == text);
  }
  CHECK(dump("-0") == "0");
  CHECK(dump(std::string(4300, '9')) == std::string(4300, '9'));
  CHECK(dump(fmt::format("-{:9<4300}", 9)) == fmt::format("-{:9<4300}", 9));
  CHECK(refusal(fmt::format("[-{:9<4301},", 9)) ==
        "ValueError: Exceeds the limit (4300 digits) for integer string conversion: value has 4301 "
        "digits; use sys.set_int_max_str_digits() to increase the limit");
  for (const char* text :
       {"01", "+1", "1_000", "1.", ".5", "-", "1e", "1e+", "-01", "0x1", "1.e5"}) {
    CAPTURE(text);
    CHECK(is_syntax_error(text));
  }
}

TEST_CASE("floats") {
  const struct {
    const char* text;
    const char* dump;
  } cases[] = {{"1e5", "100000.0"},
               {"1e16", "1e+16"},
               {"9999999999999998.0", "9999999999999998.0"},
               {"123456789012345680.0", "1.2345678901234568e+17"},
               {"0.00001", "1e-05"},
               {"0.0001", "0.0001"},
               {"1.0", "1.0"},
               {"1e22", "1e+22"},
               {"1e23", "1e+23"},
               {"5e-324", "5e-324"},
               {"2e-324", "0.0"},
               {"-0.0", "-0.0"},
               {"1e400", "Infinity"},
               {"-1e400", "-Infinity"},
               {"1e-400", "0.0"},
               {"-1e-400", "-0.0"},
               {"0e999", "0.0"},
               {"9007199254740993.0", "9007199254740992.0"},
               {"1.7976931348623159e308", "Infinity"},
               {"1e99999999999999999999", "Infinity"},
               {"1e-99999999999999999999", "0.0"},
               {"NaN", "NaN"},
               {"Infinity", "Infinity"},
               {"-Infinity", "-Infinity"}};
  for (const auto& [text, expected] : cases) {
    CAPTURE(std::string(text));
    CHECK(dump(text) == expected);
  }
  // A long row of zeros moves the point past what the exponent takes back.
  CHECK(dump(fmt::format("0.{:0<400}1e400", 0)) == "0.1");
  CHECK(dump(fmt::format("0.{:0<400}1e10", 0)) == "0.0");
  CHECK(dump(fmt::format("1{:0<400}.0", 0)) == "Infinity");
  CHECK(str("1E400") == "inf");
  CHECK(str("-Infinity") == "-inf");
  CHECK(str("NaN") == "nan");
  for (const char* text : {"-NaN", "nan", "inf", "infinity", "Infinit", "-Infinit", "+Infinity"}) {
    CAPTURE(text);
    CHECK(is_syntax_error(text));
  }
  CHECK(dump(R"({"a":NaN,"b":-0.0,"e":[],"f":{}})") == R"({"a":NaN,"b":-0.0,"e":[],"f":{}})");
  CHECK(dump("\"/\x7F\xE2\x80\xA8\"") == "\"/\x7F\xE2\x80\xA8\"");
}

TEST_CASE("duplicate keys keep the first place and the last value") {
  CHECK(dump(R"({"a":1,"b":2,"a":3})") == R"({"a":3,"b":2})");
  CHECK(dump(R"({"a":[1,{"x":1,"x":2}],"b":{},"a":{"y":[0]},"a":[9]})") == R"({"a":[9],"b":{}})");
  CHECK(dump(R"({"":1,"":{"a":1,"a":2}})") == R"({"":{"a":2}})");
  CHECK(dump("{\"\xC3\xA9\":1,\"e\xCC\x81\":2}") == "{\"\xC3\xA9\":1,\"e\xCC\x81\":2}");
  CHECK(dump(R"({"aaaaaaaab":1,"aaaaaaaa":2,"aaaaaaaa\u0000":3,"aaaaaaaab":4})") ==
        R"({"aaaaaaaab":4,"aaaaaaaa":2,"aaaaaaaa\u0000":3})");
  const JsonDocument document = parse_json(R"({"a":1,"b":2,"a":3})");
  CHECK(document.root().size() == 2);
  CHECK(document.root().find("a")->text() == "3");
}

TEST_CASE("str of a value is Python's repr inside") {
  CHECK(
      str(R"({"k":"it's","q":"\"","n":null,"t":true,"f":1e16,"l":[1,"é","\n","\u200b","a'b\"c"]})") ==
      R"({'k': "it's", 'q': '"', 'n': None, 't': True, 'f': 1e+16, 'l': [1, 'é', '\n', '\u200b', 'a\'b"c']})");
  CHECK(str("\"it's\"") == "it's");
  CHECK(str("[false,[],{}]") == "[False, [], {}]");
  CHECK(python_repr("\x7F\xC2\xA0\xC2\xAD\\\r\t") == R"('\x7f\xa0\xad\\\r\t')");
  CHECK(python_repr("\xF3\xA0\x80\x81\xEE\x80\x80\xF0\x9F\x99\x82") ==
        "'\\U000e0001\\ue000\xF0\x9F\x99\x82'");
}

TEST_CASE("lone surrogates pass, a pair of escapes joins") {
  CHECK(str(R"("\ud83d\ude00")") == "\xF0\x9F\x98\x80");
  CHECK(str(R"("\ud83d")") == "\xED\xA0\xBD");
  CHECK(str(R"("\ude00\ud83d")") == "\xED\xB8\x80\xED\xA0\xBD");
  CHECK(str(R"("\ud83dx")") == "\xED\xA0\xBDx");
  CHECK(str(R"("\ud83d\u0041")") ==
        "\xED\xA0\xBD"
        "A");
  CHECK(str(R"("\uD800\"")") == "\xED\xA0\x80\"");
  CHECK(str("\"\xED\xA0\xBD\xED\xB8\x80\"") == "\xED\xA0\xBD\xED\xB8\x80");
  CHECK(str("\"\xED\xA0\xBD\\ude00\"") == "\xED\xA0\xBD\xED\xB8\x80");
  CHECK(str(R"(["\ud83d"])") == R"(['\ud83d'])");
  CHECK(is_syntax_error(R"("\u+123")"));
  CHECK(is_syntax_error(R"("\ud83d\u12")"));
}

TEST_CASE("U+0000 does not end a text") {
  CHECK(str(R"("ab\u0000cd")") == std::string("ab\0cd", 5));
  CHECK(dump(R"("ab\u0000cd")") == R"("ab\u0000cd")");
  CHECK(str(R"(["ab\u0000cd"])") == R"(['ab\x00cd'])");
  CHECK(is_syntax_error(std::string_view("\"ab\0cd\"", 7)));
}

TEST_CASE("white space is Python's") {
  const std::string all =
      "\t\n\v\f\r\x1C\x1D\x1E\x1F \xC2\x85\xC2\xA0\xE1\x9A\x80\xE2\x80\x80"
      "\xE2\x80\x8A\xE2\x80\xA8\xE2\x80\xA9\xE2\x80\xAF\xE2\x81\x9F\xE3\x80\x80";
  CHECK(flat(all) == "");
  CHECK(strip(all) == "");
  CHECK(flat(all + "a" + all + "b" + all) == "a b");
  CHECK(strip(all + "a" + all + "b" + all) == "a" + all + "b");
  CHECK(flat("\xE2\x80\x8B \xEF\xBB\xBF") == "\xE2\x80\x8B \xEF\xBB\xBF");  // U+200B, U+FEFF
  CHECK(strip("\xE2\x80\x8B \xEF\xBB\xBF") == "\xE2\x80\x8B \xEF\xBB\xBF");
}

TEST_CASE("900 levels pass on a small stack, 901 do not") {
  on_small_stack([] {
    for (const auto& [open, close] : {std::pair{"[", "]"}, std::pair{"{\"a\":[", "]}"}}) {
      const bool pair = std::string_view(open).size() > 1;
      const std::string deepest = nested(pair ? 450 : 900, open, close);
      CHECK(dump(deepest) == deepest);
      CHECK(str(deepest).size() >= deepest.size());
    }
    CHECK(refusal(nested(901, "[", "]")) == "ValueError: JSON is nested more than 900 levels deep");
    CHECK(refusal(std::string(2'000'000, '[')).starts_with("ValueError"));
    // Width is not depth.
    CHECK(refusal("[[[],[]],[[],[],[]]]") == "accepted");
  });
}

TEST_CASE("many entries and many keys stay right") {
  std::string keys = "{";
  std::string expected = "{";
  for (int i = 0; i < 200'000; ++i) keys += fmt::format("\"k{}\":{},", i % 150'000, i);
  for (int i = 0; i < 150'000; ++i) {
    expected += fmt::format("\"k{}\":{},", i, i < 50'000 ? i + 150'000 : i);
  }
  keys.back() = expected.back() = '}';
  CHECK(dump(keys) == expected);
  std::string lists = "[";
  for (int i = 0; i < 500'000; ++i) lists += "[],";
  lists.back() = ']';
  CHECK(dump(lists) == lists);
}

}  // namespace jemm

// Escapes, widths and figures of reports.
#include "judge/render_text.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

namespace {

using namespace jemm;

TEST_CASE("text of any bytes becomes one line of UTF-8") {
  CHECK(printable("a\tb\r\n\x1b[0m\x7f") == "a\\tb\\r\\n\\u001b[0m\\u007f");
  CHECK(printable(std::string_view("\0", 1)) == "\\u0000");
  CHECK(printable("\xed\xa0\xbd\xff\xc3") == "\\ud83d\\xff\\xc3");
  CHECK(printable("\xe2\x80\xae\xe2\x80\xa8\xef\xbf\xbe") == "\\u202e\\u2028\\ufffe");
  CHECK(printable("é漢😀") == "é漢😀");
  CHECK(valid_utf8("a\n\x01\xed\xa0\xbd") == "a\n\x01\\ud83d");
}

TEST_CASE("markup is escaped for each format") {
  CHECK(html_text("<b a=\"'\">&]]>\n") == "&lt;b a=&quot;&#39;&quot;&gt;&amp;]]&gt;\\n");
  CHECK(markdown_text("a|b`c*d_e[f]<g>&$h\\@") ==
        "a\\|b\\`c\\*d\\_e\\[f\\]&lt;g&gt;&amp;&#36;h\\\\&#64;");
  CHECK(markdown_text("http://x www.x 0.5 a.b") == "http\\://x www\\.x 0.5 a.b");
  CHECK(markdown_text("# a ~b~ ![c]") == "\\# a \\~b\\~ \\!\\[c\\]");
}

TEST_CASE("columns and shortening") {
  CHECK(text_columns("abc") == 3);
  CHECK(text_columns("漢字") == 4);
  CHECK(text_columns("e\xcc\x81") == 1);
  CHECK(shortened("abcdef", 6) == "abcdef");
  CHECK(shortened("abcdefghij", 7) == "abcd…ij");
  CHECK(shortened("漢字漢字漢字", 7) == "漢字…字");
  for (std::size_t width = 4; width < 40; ++width) {
    CHECK(text_columns(shortened("漢a字é漢😀字漢b字c漢字漢字漢字漢字", width)) <= width);
  }
}

TEST_CASE("numbers") {
  CHECK(number_text(0) == "0");
  CHECK(number_text(-0.0) == "0");
  CHECK(number_text(0.02134) == "0.0213");
  CHECK(number_text(std::nan("")) == "NaN");
  CHECK(number_text(-std::numeric_limits<double>::infinity()) == "-inf");
  CHECK(number_text_up(0.02131) == "0.0214");
  CHECK(number_text_up(0.0213) == "0.0213");
  CHECK(number_text_up(0.9991) == "1");
  CHECK(number_text_up(0) == "0");
  CHECK(percent_text(0.424) == "42 %");
  CHECK(percent_text(1) == "100 %");
  CHECK(percent_text(1.0001) == ">100 %");
  CHECK(percent_text(1.01) == "101 %");
  CHECK(percent_text(0.0004) == "0.04 %");
  CHECK(percent_text(0) == "0 %");
  CHECK(percent_text(12345) == "1.2e+06 %");
  CHECK(percent_text(std::numeric_limits<double>::infinity()) == "inf");
}

TEST_CASE("a budget that is read back from its text passes") {
  double value = 1e-9;
  for (int i = 0; i < 2000; ++i, value *= 1.0107) {
    const double read = std::strtod(number_text_up(value).c_str(), nullptr);
    CHECK(read >= value);
    CHECK(read <= value * 1.0101);
  }
}

}  // namespace

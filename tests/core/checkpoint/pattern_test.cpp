// Patterns against CPython's re (golden/pattern-cases.json).
#include "checkpoint/pattern.h"

#include "core/checkpoint/memory_source.h"

namespace jemm {
namespace {

bool full_match(const std::string& pattern, const std::string& text) {
  std::int64_t steps = 1'000'000;
  return Pattern(pattern, "FILE").full_match(text, steps);
}

TEST_CASE("patterns match as in Python") {
  int n_rows = 0;
  for (const auto& row : read_golden("pattern-cases.json")) {
    const std::string pattern = row["pattern"];
    const std::string text = row["text"];
    CAPTURE(pattern);
    CAPTURE(text);
    ++n_rows;
    if (row["full"].is_null()) {
      CHECK(holds(refusal([&] { full_match(pattern, text); }), "FILE: the pattern "));
    } else {
      CHECK(full_match(pattern, text) == row["full"].get<bool>());
    }
    // A match at a name's end, as adapters' rank patterns are meant.
    CHECK(full_match("(?:(.*\\.)?(" + pattern + ")$).*", text) == row["end"].get<bool>());
  }
  CHECK(n_rows > 400);
}

TEST_CASE("what is not supported is refused by name") {
  const auto why = [](const std::string& pattern) {
    return refusal([&] { Pattern(pattern, "FILE"); });
  };
  CHECK(why("a(") == "FILE: the pattern \"a(\" holds an unclosed (, which is not supported");
  CHECK(holds(why("a)"), "an unopened )"));
  CHECK(holds(why("[a"), "an unclosed ["));
  CHECK(holds(why("[]"), "an unclosed ["));
  CHECK(holds(why("*a"), "a quantifier without operand"));
  CHECK(holds(why("a|+"), "a quantifier without operand"));
  CHECK(holds(why("a**"), "a second quantifier"));
  CHECK(holds(why("a*+"), "a second quantifier"));
  CHECK(holds(why("^*"), "a repeated anchor"));
  CHECK(holds(why("(?<=a)b"), "a group of another kind"));
  CHECK(holds(why("(?i)a"), "a group of another kind"));
  CHECK(holds(why("(?P<n>a)"), "a group of another kind"));
  CHECK(holds(why("(a)\\1"), "\\1"));
  CHECK(holds(why("\\bq"), "\\b"));
  CHECK(holds(why("a\\"), "a backslash at its end"));
  CHECK(holds(why("a{x}"), "a brace that is no {m}"));
  CHECK(holds(why("a{2,1}"), "a brace that is no {m}"));
  CHECK(holds(why("a{99999999999999999999}"), "a large count"));
  CHECK(holds(why("[\\d-x]"), "an unusual range in a class"));
  CHECK(holds(why("[b-a]"), "an unusual range in a class"));
  CHECK(holds(why("caf\xC3\xA9"), "a character that is not ASCII"));
  CHECK(holds(why(std::string(100, '(') + std::string(100, ')')), "too many nested groups"));
}

TEST_CASE("a hostile pattern ends soon") {
  const std::string text(80, 'a');
  CHECK_FALSE(full_match("(a*)*(a*)*(a*)*b", text));
  CHECK_FALSE(full_match("(a|aa)+b", text));
  CHECK(full_match("((((((((a*)*)*)*)*)*)*)*)*", text));
  CHECK_FALSE(full_match("(.*(?!.*b)(?=.*(?=.*(?!.*c)))a)*b", text));
  CHECK(holds(refusal([] { Pattern("(((((a{9}){9}){9}){9}){9}){9}", "FILE"); }), "too much"));
  CHECK(holds(refusal([] { Pattern("(((a{1000}){1000}){1000}){1000}", "FILE"); }), "too much"));

  std::int64_t steps = 50;
  const Pattern pattern(".*.*.*", "FILE");
  CHECK(refusal([&] { pattern.full_match(text, steps); }) ==
        "FILE: the patterns take too long to match");
}

}  // namespace
}  // namespace jemm

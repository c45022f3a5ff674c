// The split pattern: words of the reported cases by hand, of random strings by the reference.
#include <doctest/doctest.h>

#include "core/tokens/support.h"
#include "tokens/splitter.h"

namespace jemm::test {
namespace {

using Words = std::vector<std::string>;

Words split(const std::string& text, SplitPattern pattern) {
  Words words;
  Splitter splitter(text, pattern);
  for (auto word = splitter.next(); !word.empty(); word = splitter.next()) words.emplace_back(word);
  return words;
}

Words qwen3_5(const std::string& text) {
  return split(text, SplitPattern::kQwen3_5);
}
Words qwen2(const std::string& text) {
  return split(text, SplitPattern::kQwen2);
}

}  // namespace

TEST_CASE("marks belong to words in one pattern only") {
  CHECK(qwen3_5("किताब") == Words{"किताब"});
  CHECK(qwen2("किताब") == Words{"क", "ित", "ाब"});
  CHECK(qwen3_5("x\u0301y") == Words{"x\u0301y"});
  CHECK(qwen2("x\u0301y") == Words{"x", "\u0301y"});
  CHECK(qwen3_5("a \u0301b") == Words{"a", " \u0301b"});
  CHECK(qwen2("a \u0301b") == Words{"a", " \u0301", "b"});
  CHECK(qwen3_5("e\u20DDx") == Words{"e\u20DDx"});
  CHECK(qwen2("e\u20DDx") == Words{"e", "\u20DDx"});
  CHECK(qwen3_5("1\u0301") == Words{"1", "\u0301"});
  CHECK(qwen2("1\u0301") == Words{"1", "\u0301"});
  CHECK(qwen3_5("\u200D\u200Da") == Words{"\u200D\u200D", "a"});
}

TEST_CASE("blanks, line breaks, digits and symbols") {
  for (const auto& words : {Words{"a", "  ", " b"},
                            Words{"a", "  \n", " ", " b"},
                            Words{"a", "\r\n\r\n", " ", " b"},
                            Words{"!!!\r\n", "x"},
                            Words{"x", "  "},
                            Words{"a", "\u00A0", "\u00A0b"},
                            Words{"a", " \t", " b"},
                            Words{" ", "1"},
                            Words{"2", "0", "2", "4"},
                            Words{"१", "२", "3"},
                            Words{"½", "x"},
                            Words{"a", "\u0085b"},
                            Words{"I", "'M"},
                            Words{"'ſ", "x"},
                            Words{"ab", std::string("\0cd", 3)},
                            Words{"a", " ", " \u001C", "b"},
                            Words{"x", "'S", "'T", "'RE", "'VE", "'M", "'LL", "'D"},
                            Words{"'r"},
                            Words{" '", "s"},
                            Words{"!!", "a"}}) {
    std::string text;
    for (const auto& word : words) text += word;
    CAPTURE(text);
    CHECK(qwen3_5(text) == words);
    CHECK(qwen2(text) == words);
  }
}

TEST_CASE("words of the golden strings") {
  int n = 0;
  for_each_line(JEMM_SOURCE_DIR "/golden/tokens/strings.jsonl", [&](const nlohmann::json& record) {
    const auto text = record["text"].get<std::string>();
    for (const auto& [name, pattern] :
         {std::pair("qwen2", SplitPattern::kQwen2), std::pair("qwen3_5", SplitPattern::kQwen3_5)}) {
      std::vector<std::size_t> sizes;
      for (const auto& word : split(text, pattern)) sizes.push_back(word.size());
      CAPTURE(text);
      CHECK(sizes == record["words"][name].get<std::vector<std::size_t>>());
      ++n;
    }
  });
  CHECK(n > 600);
}

TEST_CASE("the patterns are spelled as the goldens' vocabularies spell theirs") {
  const auto file =
      nlohmann::json::parse(read(JEMM_SOURCE_DIR "/fixtures/tiny-a/base/tokenizer.json"));
  const auto& split = file["pre_tokenizer"]["pretokenizers"][0];
  CHECK(split["pattern"]["Regex"].get<std::string>() == pattern_regex(SplitPattern::kQwen3_5));
}

}  // namespace jemm::test

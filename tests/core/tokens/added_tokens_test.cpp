// Finding added tokens: leftmost, longest, in linear time.
#include <doctest/doctest.h>

#include "core/tokens/support.h"
#include "tokens/added_tokens.h"

namespace jemm::test {
namespace {

AddedTokens tokens(std::vector<std::string> contents) {
  std::vector<AddedToken> list;
  for (auto& content : contents)
    list.push_back({std::move(content), static_cast<std::int32_t>(list.size())});
  return {std::move(list), "memory"};
}

// Every match, as "begin-end:id".
std::string matches(const AddedTokens& added, std::string_view text) {
  std::string found;
  for (auto match = added.find(text, 0); match; match = added.find(text, match->end)) {
    found += fmt::format("{}-{}:{} ", match->begin, match->end, match->id);
  }
  return found;
}

}  // namespace

TEST_CASE("the leftmost match, and of several there the longest") {
  const auto added = tokens({"ab", "abcd", "bc", "d", "\xE4\xB8\xAD"});
  CHECK(matches(added, "abcd") == "0-4:1 ");
  CHECK(matches(added, "abcx") == "0-2:0 ");
  CHECK(matches(added, "xbcd") == "1-3:2 3-4:3 ");
  CHECK(matches(added, "aabab") == "1-3:0 3-5:0 ");
  CHECK(matches(added, "\xE4\xB8\xAD\xE4\xB8") == "0-3:4 ");
  CHECK(matches(added, "") == "");
  CHECK(matches(tokens({}), "abcd") == "");
  CHECK(added.count("ab ab d") == 3);
  CHECK(added.id("abcd") == 1);
  CHECK(added.id("abc") == -1);
  CHECK(added.size() == 5);
}

TEST_CASE("tokens that cannot be found are refused") {
  for (const auto& contents :
       {std::vector<std::string>{""}, {"a", "b", "a"}, {std::string(257, 'x')}}) {
    CHECK(error_of(ErrorKind::kInput, [&] { tokens(contents); }).find("memory") == 0);
  }
  CHECK(tokens({std::string(256, 'x')}).size() == 1);
}

}  // namespace jemm::test

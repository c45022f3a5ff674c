// Memory stays flat however long the input is.
#include <doctest/doctest.h>

#include <fstream>

#include "cli/process.h"
#include "cli/results.h"

namespace jemm::test {
namespace {

long peak_kib(const std::string& command, const ScratchDir& scratch, int n_lines) {
  const std::string path = scratch.file("in.jsonl");
  std::ofstream out(path);
  for (int n = 0; n < n_lines; ++n) out << body(n) << '\n';
  out.close();
  const Finished run =
      run_jemm(Process{.arguments = {command, path}, .output_file = "/dev/null"});
  CHECK(run.code == 0);
  return run.max_rss_kib;
}

}  // namespace

TEST_CASE("encode and decide hold no lines") {
#if defined(__SANITIZE_ADDRESS__)
  constexpr int kScale = 10;  // the sanitizer's quarantine grows with every allocation
  constexpr long kLimitKib = 400 * 1024;
#else
  constexpr int kScale = 1;
  constexpr long kLimitKib = 32 * 1024;
#endif
  const ScratchDir scratch;
  CHECK(peak_kib("encode", scratch, 200'000 / kScale) <= peak_kib("encode", scratch, 1000) + kLimitKib);
  CHECK(peak_kib("decide", scratch, 20'000 / kScale) <= peak_kib("decide", scratch, 1000) + kLimitKib);
}

TEST_CASE("a small body with very many questions about a long state needs little memory") {
  const ScratchDir scratch;
  std::string words;
  for (int i = 0; i < 1500; ++i) words += "word ";
  std::string text = R"({"state":")" + words + R"(","questions":{)";
  constexpr int kQuestions = 3000;
  for (int i = 0; i < kQuestions; ++i) text += "\"" + std::to_string(i) + R"(":{"type":"noul"},)";
  const std::string bad = text + R"("last":{"type":"nil"}}})";
  text.back() = '}';
  text += "}";
  const std::string path = scratch.write("in.jsonl", text + "\n" + bad + "\n");
  const std::string out = scratch.file("out.jsonl");
  const Finished run = run_jemm({"encode", "--out", out, path});
  CHECK(run.code == 3);
#if !defined(__SANITIZE_ADDRESS__)
  CHECK(run.max_rss_kib <= 160 * 1024);
#endif
  const std::vector<Json> lines = parse_lines(read_text(out));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]["questions"].size() == kQuestions);
  CHECK(lines[1]["error"]["detail"] == "unsupported question type: 'nil'");
}

}  // namespace jemm::test

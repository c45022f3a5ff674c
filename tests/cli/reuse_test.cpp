// jemm decide --prefix-reuse through the program: equal answers, order, errors, interruptions,
// audits.
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "cli/process.h"
#include "cli/results.h"

namespace jemm::test {
namespace {

std::string words(std::mt19937& random, int n) {
  static const char* const kWords[] = {"search", "mailer", "index", "cache", "node", "is", "down"};
  std::string text;
  for (int i = 0; i < n; ++i) text += std::string(kWords[random() % 7]) + " ";
  return text;
}

/// Requests about few states, in any order, with repeats, bad lines and a torn end.
std::string mixed_input(int n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::string> states, instructions;
  for (const int length : {0, 20, 120, 300}) states.push_back(words(random, length));
  for (int i = 0; i < 8; ++i) instructions.push_back(words(random, 1 + i * 5));
  std::string text;
  for (int i = 0; i < n; ++i) {
    if (random() % 12 == 0) {
      text += random() % 2 == 0 ? "no json\n"
                                : R"({"state":"x","questions":{}})"
                                  "\n";
      continue;
    }
    Json questions;
    for (auto k = 1 + random() % 4; k > 0; --k) {
      questions["q" + std::to_string(k)] = {{"instructions", instructions[random() % 8]},
                                            {"criteria", {{"a", "search"}, {"b", "mailer"}}}};
    }
    const Json request{
        {"state", states[random() % 4] + (random() % 3 == 0 ? words(random, 2) : "")},
        {"questions", questions}};
    text += request.dump() + "\n";
    if (random() % 10 == 0) text += request.dump() + "\n";
  }
  return text + body(0).substr(0, 50);
}

/// Without what reuse is allowed to change.
std::vector<Json> answers_only(const std::string& text) {
  std::vector<Json> lines = results(text);
  for (Json& line : lines) {
    if (line.contains("jemm")) line["jemm"].erase("reuse");
  }
  return lines;
}

std::size_t sum(const std::vector<Json>& lines, const char* field) {
  std::size_t n = 0;
  for (const Json& line : lines) {
    if (line.contains("answers")) n += line["jemm"]["reuse"][field].get<std::size_t>();
  }
  return n;
}

}  // namespace

TEST_CASE("every mode answers the same bits under the same fingerprint, and says what it reused") {
  const ScratchDir scratch;
  const std::string path = scratch.write("in.jsonl", mixed_input(40, 1));
  const Finished off = run_jemm({"decide", path});
  CHECK(off.code == 3);
  std::size_t n_before = sum(results(off.out), "rows_computed");
  const std::size_t n_all = n_before;
  for (const std::string mode : {"request", "file"}) {
    const Finished run = run_jemm({"decide", "--prefix-reuse", mode, path});
    CHECK(run.code == 3);
    CHECK(answers_only(run.out) == answers_only(off.out));
    const std::vector<Json> lines = results(run.out);
    CHECK(sum(lines, "rows_computed") + sum(lines, "rows_reused") == n_all);
    CHECK(sum(lines, "rows_computed") < n_before);
    n_before = sum(lines, "rows_computed");
    for (const Json& line : lines) {
      if (line.contains("answers")) CHECK(line["jemm"]["reuse"]["mode"] == mode);
    }
    for (const std::string budget : {"1", "300"}) {
      const Finished small = run_jemm({"decide", "--prefix-reuse", mode, "--batch-tokens", budget,
                                       "--reuse-memory", "40kB", path});
      CHECK(answers_only(small.out) == answers_only(off.out));
    }
  }
}

TEST_CASE("request mode answers from a pipe as lines come; file mode refuses it by name") {
  const Finished request = run_jemm({"decide", "--prefix-reuse", "request"}, mixed_input(5, 2));
  CHECK(request.code == 3);
  const Finished piped = run_jemm(
      Process{.arguments = {"decide", "--prefix-reuse", "file"}, .input_file = "/dev/null"});
  CHECK(piped.code == 2);
  CHECK(piped.out.empty());
  CHECK(piped.err.find("standard input") != std::string::npos);
  const ScratchDir scratch;
  const std::string path = scratch.write("in.jsonl", bodies(3));
  const Finished redirected =
      run_jemm(Process{.arguments = {"decide", "--prefix-reuse", "file"}, .input_file = path});
  CHECK(redirected.code == 0);
  CHECK(parse_lines(redirected.out).size() == 3);
  const Finished device = run_jemm({"decide", "--prefix-reuse", "file", path, "/dev/null"});
  CHECK(device.code == 2);
  CHECK(device.err.find("/dev/null") != std::string::npos);
  CHECK(run_jemm({"decide", "--prefix-reuse", "all", path}).code == 2);
  CHECK(run_jemm({"decide", "--reuse-memory", "much", path}).code == 2);
  CHECK(run_jemm({"decide", "--reuse-memory", "-1", path}).code == 2);
}

TEST_CASE("file mode over several inputs, shards and a limit of errors") {
  const ScratchDir scratch;
  const std::string a = scratch.write("a.jsonl", mixed_input(15, 3));
  const std::string b = scratch.write("b.jsonl", mixed_input(15, 4));
  const auto run = [&](const std::string& mode, std::vector<std::string> more) {
    std::vector<std::string> arguments{"decide", "--prefix-reuse", mode, a, b};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_jemm(arguments);
  };
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{},
                                             {"--shard", "2/3"},
                                             {"--max-errors", "2"},
                                             {"--fail-fast"},
                                             {"--fail-fast", "--batch-tokens", "200"}}) {
    const Finished off = run("off", more), file = run("file", more);
    CHECK(off.code == file.code);
    CHECK(answers_only(off.out) == answers_only(file.out));
  }
}

TEST_CASE("kill -9 and --resume in file mode, the modes mixed: nothing lost, nothing twice") {
  const ScratchDir scratch;
  const std::string input = scratch.write("in", mixed_input(300, 5));
  const std::string out = scratch.file("o");
  const std::vector<Json> whole = answers_only(run_jemm({"decide", input}).out);
  std::mt19937 random(1);
  int n_parts = 0;
  const auto n_bytes = [&] {
    std::error_code absent;
    const auto size = std::filesystem::file_size(out, absent);
    return absent ? std::uintmax_t{0} : size;
  };
  for (int round = 0; round < 40; ++round) {
    const std::string mode =
        std::vector<std::string>{"file", "request", "off", "file"}[random() % 4];
    const std::uintmax_t n_before = n_bytes();
    const pid_t pid = start_jemm(
        Process{.arguments = {"decide", "--resume", "--prefix-reuse", mode, "--batch-tokens", "700",
                              "--reuse-memory", "60kB", "--out", out, input}});
    for (int i = 0; i < 3000 && n_bytes() <= n_before; ++i) ::usleep(5'000);
    ::usleep(static_cast<useconds_t>(random() % 30'000));
    ::kill(pid, SIGKILL);
    wait_jemm(pid);
    std::string kept = std::filesystem::exists(out) ? read_text(out) : "";
    kept.erase(kept.rfind('\n') == std::string::npos ? 0 : kept.rfind('\n') + 1);
    const std::vector<Json> lines = answers_only(kept);
    REQUIRE(lines.size() <= whole.size());
    REQUIRE(std::equal(lines.begin(), lines.end(), whole.begin()));
    if (!lines.empty() && lines.size() < whole.size()) ++n_parts;
    if (lines.size() == whole.size()) break;
  }
  CHECK(n_parts > 0);
  CHECK(run_jemm({"decide", "--resume", "--prefix-reuse", "file", "--out", out, input}).code == 3);
  CHECK(answers_only(read_text(out)) == whole);
}

TEST_CASE("Ctrl-C in file mode ends between passes with whole lines in order and 130") {
  const ScratchDir scratch;
  const std::string input = scratch.write("in", mixed_input(1500, 6));
  const std::string out = scratch.file("o");
  const pid_t pid =
      start_jemm(Process{.arguments = {"decide", "--prefix-reuse", "file", "--batch-tokens", "400",
                                       "--out", out, input}});
  for (int i = 0; i < 3000; ++i) {
    std::error_code absent;
    if (std::filesystem::file_size(out, absent) > 0 && !absent) break;
    ::usleep(5'000);
  }
  ::kill(pid, SIGINT);
  CHECK(wait_jemm(pid) == 130);
  const std::string kept = read_text(out);
  REQUIRE_FALSE(kept.empty());
  CHECK(kept.back() == '\n');
  const std::size_t n_lines = parse_lines(kept).size();
  const Finished resumed =
      run_jemm({"decide", "--resume", "--prefix-reuse", "file", "--out", out, input});
  CHECK(resumed.code == 3);
  const std::vector<Json> whole = parse_lines(read_text(out));
  CHECK(n_lines < whole.size());
  CHECK(read_text(out).substr(0, kept.size()) == kept);
}

TEST_CASE("a closed pipe and a full disk in file mode") {
  const ScratchDir scratch;
  const std::string input = scratch.write("in", mixed_input(30, 7));
  const Finished full = run_jemm(Process{.arguments = {"decide", "--prefix-reuse", "file", input},
                                         .output_file = "/dev/full"});
  CHECK(full.code == 6);
}

TEST_CASE("audits: the same requests every time, in the line and at the end") {
  const ScratchDir scratch;
  const std::string path = scratch.write("in.jsonl", mixed_input(60, 8));
  const auto audited = [&](const std::string& rate, const std::string& mode) {
    const Finished run = run_jemm({"decide", "--prefix-reuse", mode, "--audit-reuse", rate, path});
    CHECK(run.code == 3);
    std::vector<std::string> ids;
    for (const Json& line : results(run.out)) {
      if (!line.contains("answers") || !line["jemm"]["reuse"].contains("audit")) continue;
      CHECK(line["jemm"]["reuse"]["audit"] == "equal");
      ids.push_back(line["id"].dump());
    }
    const bool told = run.err.find(std::to_string(ids.size()) + " requests were computed again") !=
                      std::string::npos;
    CHECK(told == !ids.empty());
    return ids;
  };
  const std::vector<std::string> half = audited("0.5", "file");
  CHECK(half == audited("0.5", "request"));
  CHECK(half.size() > 10);
  CHECK(audited("1", "request").size() > half.size() + 10);
  CHECK(audited("0", "file").empty());
  CHECK(run_jemm({"decide", "--audit-reuse", "0.5", path}).code == 2);
  CHECK(run_jemm({"decide", "--prefix-reuse", "file", "--audit-reuse", "2", path}).code == 2);
}

TEST_CASE("a difference that an earlier run's audit has shown still ends a resumed run with 4") {
  const ScratchDir scratch;
  const std::string input = scratch.write("in", bodies(3));
  const std::string out = scratch.file("o");
  const std::vector<std::string> arguments{
      "decide", "--resume", "--prefix-reuse", "file", "--audit-reuse", "1", "--out", out, input};
  const Finished good = run_jemm(arguments);
  CHECK(good.code == 0);
  CHECK(good.err.find("3 requests were computed again without reuse: equal bits") !=
        std::string::npos);
  std::string text = read_text(out);
  const std::string equal = R"("audit":"equal")";
  for (const auto& [audit, code] : {std::pair{R"("audit":0.125)", 4}, {R"("audit":0)", 4}}) {
    std::string changed = text;
    changed.replace(changed.find(equal), equal.size(), audit);
    scratch.write("o", changed);
    CHECK(run_jemm(arguments).code == code);
    std::vector<std::string> tolerant = arguments;
    tolerant.insert(tolerant.end(), {"--audit-tolerance", "0.2"});
    CHECK(run_jemm(tolerant).code == 0);
  }
}

TEST_CASE("file mode holds no more than its memory, however long the input") {
#if defined(__SANITIZE_ADDRESS__)
  constexpr int kFew = 200, kLines = 600;
  constexpr long kLimitKib = 400 * 1024;  // the sanitizer's quarantine grows with every allocation
#else
  constexpr int kFew = 1000, kLines = 6000;
  constexpr long kLimitKib = 32 * 1024;
#endif
  const ScratchDir scratch;
  const std::string few = scratch.write("few", bodies(kFew)),
                    many = scratch.write("many", bodies(kLines));
  const auto peak = [&](const std::string& path) {
    const Finished run = run_jemm(
        Process{.arguments = {"decide", "--prefix-reuse", "file", "--reuse-memory", "2MiB", path},
                .output_file = "/dev/null"});
    CHECK(run.code == 0);
    return run.max_rss_kib;
  };
  CHECK(peak(many) <= peak(few) + kLimitKib);
}

}  // namespace jemm::test

// jemm decide --resume: what a killed run leaves is kept, and the whole is what one run gives.
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "cli/process.h"
#include "cli/results.h"

namespace jemm::test {
namespace {

std::vector<std::string> arguments(const ScratchDir& scratch, const std::string& mode) {
  return {"decide", mode, "--batch-tokens", "200", "--out", scratch.file("o"), scratch.file("in")};
}

std::size_t n_bytes(const ScratchDir& scratch) {
  std::error_code absent;
  const std::uintmax_t size = std::filesystem::file_size(scratch.file("o"), absent);
  return absent ? 0 : static_cast<std::size_t>(size);
}

}  // namespace

TEST_CASE("kill -9 at any point, then --resume: nothing lost, nothing twice") {
  constexpr int kRequests = 400;
  const ScratchDir scratch;
  std::string input = bodies(kRequests);
  input.insert(input.find('\n') + 1, "a bad line\n");
  scratch.write("in", input);
  const std::vector<Json> whole = results(run_jemm({"decide", scratch.file("in")}).out);
  REQUIRE(whole.size() == kRequests + 1);

  std::mt19937 random(1);
  int n_kills = 0;
  int n_parts = 0;
  for (int round = 0; round < 60; ++round) {
    const std::size_t n_before = n_bytes(scratch);
    const pid_t pid = start_jemm(Process{.arguments = arguments(scratch, "--resume")});
    // A kill may fall anywhere, but each round gets on by at least one write.
    for (int i = 0; i < 3000 && n_bytes(scratch) <= n_before; ++i) ::usleep(10'000);
    ::usleep(static_cast<useconds_t>(random() % 60'000));
    ::kill(pid, SIGKILL);
    if (wait_jemm(pid) == 128 + SIGKILL) ++n_kills;
    // What is there must be whole lines of the right answers, but for a torn end.
    std::string kept =
        std::filesystem::exists(scratch.file("o")) ? read_text(scratch.file("o")) : "";
    kept.erase(kept.rfind('\n') == std::string::npos ? 0 : kept.rfind('\n') + 1);
    const std::vector<Json> lines = results(kept);
    REQUIRE(lines.size() <= whole.size());
    REQUIRE(std::equal(lines.begin(), lines.end(), whole.begin()));
    if (lines.size() > 1 && lines.size() < whole.size()) ++n_parts;
    if (lines.size() == whole.size()) break;
  }
  CHECK(n_kills > 0);
  CHECK(n_parts > 0);
  CHECK(run_jemm(arguments(scratch, "--resume")).code == 3);
  CHECK(results(read_text(scratch.file("o"))) == whole);
}

TEST_CASE("a torn last line is cut and answered again") {
  const ScratchDir scratch;
  scratch.write("in", bodies(5));
  CHECK(run_jemm(arguments(scratch, "--progress=none")).code == 0);
  const std::string whole = read_text(scratch.file("o"));
  for (const std::size_t cut : {whole.size() - 1, whole.size() - 30, whole.find('\n') + 1,
                                whole.find('\n'), std::size_t{5}, std::size_t{0}}) {
    scratch.write("o", whole.substr(0, cut));
    CHECK(run_jemm(arguments(scratch, "--resume")).code == 0);
    CHECK(results(read_text(scratch.file("o"))) == results(whole));
  }
}

TEST_CASE("a finished file is left alone and the run says so") {
  const ScratchDir scratch;
  scratch.write("in", bodies(3));
  CHECK(run_jemm(arguments(scratch, "--resume")).code == 0);
  const std::string before = read_text(scratch.file("o"));
  const Finished again = run_jemm(arguments(scratch, "--resume"));
  CHECK(again.code == 0);
  CHECK(again.err.find("all 3 requests are already answered") != std::string::npos);
  CHECK(read_text(scratch.file("o")) == before);
}

TEST_CASE("--resume refuses answers to other requests or of another engine, and changes nothing") {
  const ScratchDir scratch;
  scratch.write("in", bodies(3));
  CHECK(run_jemm(arguments(scratch, "--resume")).code == 0);
  const std::string before = read_text(scratch.file("o"));

  const auto refused = [&](std::vector<std::string> args, const std::string& reason) {
    const Finished run = run_jemm(args);
    CHECK(run.code == 2);
    CHECK(run.err.find(reason) != std::string::npos);
    CHECK(read_text(scratch.file("o")) == before);
  };
  std::vector<std::string> args = arguments(scratch, "--resume");
  args.insert(args.end(), {"--threshold", "0.123"});
  refused(args, "another engine");
  scratch.write("in", body(0) + "\n" + body(7) + "\n" + body(2) + "\n");
  refused(arguments(scratch, "--resume"), "changed");
  scratch.write("in", "\n" + bodies(3));
  refused(arguments(scratch, "--resume"), "another request");
  scratch.write("in", bodies(2));
  refused(arguments(scratch, "--resume"), "more lines");
  scratch.write("in", bodies(3));
  refused(arguments(scratch, "--progress=none"), "exists");
  for (const char* notes : {"something else\n", "my notes without a newline", "{\"id\":\"1\"}\n"}) {
    scratch.write("o", notes);
    const Finished foreign = run_jemm(arguments(scratch, "--resume"));
    CHECK(foreign.code == 2);
    CHECK(read_text(scratch.file("o")) == notes);
  }
  CHECK(run_jemm({"decide", "--resume", "--out", "/dev/null", scratch.file("in")}).code == 2);
}

TEST_CASE("--resume never takes the input for its output") {
  const ScratchDir scratch;
  const std::string line =
      R"({"id":"a","request":{"state":"s","questions":{"q":{"type":"noul"}}}})";
  const std::string file = scratch.write("both", line);  // as a torn result line would end
  const Finished run = run_jemm({"decide", "--resume", "--out", file, file});
  CHECK(run.code == 2);
  CHECK(run.err.find("is also an input") != std::string::npos);
  CHECK(read_text(file) == line);
}

TEST_CASE("a file that got CRLF line ends is kept as it is") {
  const ScratchDir scratch;
  scratch.write("in", bodies(3));
  CHECK(run_jemm(arguments(scratch, "--resume")).code == 0);
  const std::string whole = read_text(scratch.file("o"));
  std::string crlf;
  for (const char c : whole) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  scratch.write("o", crlf);
  CHECK(run_jemm(arguments(scratch, "--resume")).code == 0);
  CHECK(read_text(scratch.file("o")) == crlf);
  scratch.write("o", crlf.substr(0, crlf.rfind("{\"id\"")));
  CHECK(run_jemm(arguments(scratch, "--resume")).code == 0);
  CHECK(results(read_text(scratch.file("o"))) == results(whole));
}

}  // namespace jemm::test

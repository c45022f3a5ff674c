// jemm decide through the program: line forms, order, errors, exit codes.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "cli/process.h"
#include "cli/results.h"

namespace jemm::test {

TEST_CASE("the three line forms carry the same request") {
  const std::string raw = Json(body(1)).dump();
  const Finished run = run_jemm({"decide"}, body(1) + "\n" + R"({"id":"b","request":)" + body(1) +
                                                "}\n" + R"({"id":12,"raw":)" + raw + "}\n" +
                                                R"({"custom_id":"d","body":)" + body(1) + "}\n");
  CHECK(run.code == 0);
  const std::vector<Json> lines = results(run.out);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0]["id"] == "1");
  CHECK(lines[1]["id"] == "b");
  CHECK(lines[2]["id"] == 12);
  CHECK(lines[3]["id"] == "d");
  for (const Json& line : lines) {
    CHECK(line["answers"] == lines[0]["answers"]);
    CHECK(line["jemm"]["request_sha256"] == lines[0]["jemm"]["request_sha256"]);
    CHECK(line["model"] == "JEMM");
  }
  CHECK(lines[0]["answers"]["down"]["choice"] == "search");
}

TEST_CASE("ids: a bare body's own string id, big numbers, surrogates, the line number") {
  std::string named = body(1);
  named.insert(1, R"("id":"mine",)");
  std::string numbered = body(1);
  numbered.insert(1, R"("id":7,)");
  const std::string digits = "123456789012345678901234567890";
  const Finished run = run_jemm(
      {"decide"}, named + "\n" + numbered + "\n" + "{\"id\":" + digits + ",\"request\":" + body(1) +
                      "}\n" + R"({"id":"\ud800","request":)" + body(1) + "}\n");
  CHECK(run.code == 0);
  std::istringstream out(run.out);
  for (const std::string expected : {R"({"id":"mine",)", R"({"id":"2",)", R"({"id":123456789012345678901234567890,)", R"({"id":"\ud800",)"}) {
    std::string line;
    std::getline(out, line);
    CHECK(line.substr(0, expected.size()) == expected);
  }
}

TEST_CASE("broken ids never break the output line") {
  std::string bare = body(1);
  bare.insert(1, R"("id":"a\xb",)");
  const std::vector<Json> lines = results(
      run_jemm({"decide"}, bare + "\n" + R"({"id":01,"request":)" + body(1) + "}\n" +
                               R"({"id":"a\qb","request":)" + body(1) + "}\n" +
                               R"({"id":NaN,"request":)" + body(1) + "}\n" +
                               R"({"id":[1],"request":)" + body(1) + "}\n" +
                               R"({"id":"ok","x":tru,"request":)" + body(1) + "}\n")
          .out);
  REQUIRE(lines.size() == 6);
  for (const std::size_t broken : {0, 1, 2, 5}) {
    CHECK(lines[broken]["error"]["error"] == "JSONDecodeError");
    CHECK(lines[broken]["line"] == broken + 1);
  }
  CHECK(lines[3]["id"] == "4");
  CHECK(lines[3].contains("answers"));
  CHECK(lines[4]["id"] == "5");
}

TEST_CASE("BOM, CRLF, blank lines and a raw U+2028 are fine; line numbers are physical") {
  std::string separator = body(2);
  separator.replace(separator.find("case"), 4, "\xE2\x80\xA8");
  const Finished run = run_jemm({"decide"}, "\xEF\xBB\xBF" + body(0) + "\r\n\r\n  \t\n" + body(1) +
                                                "\r\n" + separator + "\n\xEF\xBB\xBF" + body(3));
  CHECK(run.code == 0);
  const std::vector<Json> lines = results(run.out);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0]["id"] == "1");
  CHECK(lines[1]["id"] == "4");
  CHECK(lines[2]["id"] == "5");
  CHECK(lines[3]["id"] == "6");
}

TEST_CASE("one bad line never stops the run, and a torn last line is its own error") {
  const Finished run =
      run_jemm({"decide"}, body(0) + "\nnonsense\n[1]\n{\"id\":\"x\",\"request\":{\"state\":1}}\n" +
                               "{\"id\":\"y\",\"raw\":5}\n" + body(1) + "\n" + body(2).substr(0, 40));
  CHECK(run.code == 3);
  const std::vector<Json> lines = results(run.out);
  REQUIRE(lines.size() == 7);
  CHECK(lines[0].contains("answers"));
  CHECK(lines[1]["error"]["error"] == "JSONDecodeError");
  CHECK(lines[1]["line"] == 2);
  CHECK(lines[2]["error"] == Json{{"error", "ValueError"}, {"detail", "request body must be an object"}});
  CHECK(lines[3]["id"] == "x");
  CHECK(lines[3]["error"]["detail"] == "no questions");
  CHECK(lines[4]["id"] == "y");
  CHECK(lines[4]["error"]["error"] == "ValueError");
  CHECK(lines[5].contains("answers"));
  CHECK(lines[6]["error"]["error"] == "JSONDecodeError");
  CHECK(lines[6]["line"] == 7);
  CHECK(run.err.find("5 of 7 requests failed") != std::string::npos);
}

TEST_CASE("--fail-fast and --max-errors stop the run after what was asked") {
  const std::string input = body(0) + "\nbad\nbad\nbad\n" + body(1) + "\n";
  const Finished fast = run_jemm({"decide", "--fail-fast"}, input);
  CHECK(fast.code == 3);
  CHECK(parse_lines(fast.out).size() == 2);
  const Finished two = run_jemm({"decide", "--max-errors", "2"}, input);
  CHECK(two.code == 3);
  CHECK(parse_lines(two.out).size() == 3);
  const Finished many = run_jemm({"decide", "--max-errors", "9"}, input);
  CHECK(many.code == 3);
  CHECK(parse_lines(many.out).size() == 5);
}

TEST_CASE("exit codes by class") {
  const ScratchDir scratch;
  CHECK(run_jemm({"decide"}, "\n \n").code == 5);
  CHECK(run_jemm({"decide", "--no-such-flag"}).code == 2);
  for (const char* shard : {"3/2", "0/2", "1/-1", "1", "1/2/3", "1/18446744073709551616"}) {
    CHECK(run_jemm({"decide", "--shard", shard}, body(0)).code == 2);
  }
  for (const char* device : {"cudax", "cuda:", "cuda:-1", "gpu"}) {
    CHECK(run_jemm({"decide", "--device", device}, body(0)).code == 2);
  }
  CHECK(run_jemm({"decide", "--threshold", "nan"}, body(0)).code == 2);
  CHECK(run_jemm({"decide", "--fail-on-undecided", "nan"}, body(0)).code == 2);
  CHECK(run_jemm({"decide", "--version"}).code == 0);
  CHECK(run_jemm({"decide"}, "\xEF\xBB\xBF\n\n").code == 5);
  CHECK(run_jemm({"decide", "--force"}, body(0)).code == 2);
  CHECK(run_jemm(std::vector<std::string>{}).code == 2);
  CHECK(run_jemm({"decide", scratch.file("absent.jsonl")}).code == 6);
  CHECK(run_jemm({"decide", "--model", scratch.file("absent") + "+x"}, body(0)).code == 6);
  CHECK(run_jemm({"decide", "--device", "cuda"}, body(0)).code == 4);
  CHECK(run_jemm({"decide", "--out", scratch.file("no/such/dir")}, body(0)).code == 6);
  CHECK(run_jemm({"--help"}).code == 0);
  CHECK(run_jemm({"decide", "--help"}).out.find("Examples") != std::string::npos);
  CHECK(run_jemm({"--version"}).out.find("oneDNN") != std::string::npos);
}

TEST_CASE("empty values, unknown commands and lone options are usage errors") {
  const std::vector<std::vector<std::string>> wrong = {
      {"decide", "--model", ""}, {"decide", "--out", ""},   {"encode", "--out", ""},
      {"record", "--out", ""},   {"parity", "--report", ""}, {"inspect", ""},
      {"decide", ""},            {"export", "--model", "", "--out", "x"},
      {"decide", "--audit-tolerance", "0.1"}, {"decide", "--format", "1"},
      {"decide", "--progress", "1"}, {"decide", "--prefix-reuse", "1"},
      {"export", "--lora", "0", "--model", "x", "--out", "y"},
      {"parity", "--self-test", "--golden", "g"}, {"parity", "--self-test", "--report", "r"}};
  for (const std::vector<std::string>& arguments : wrong) {
    CAPTURE(arguments[0]);
    CHECK(run_jemm(arguments, body(0)).code == 2);
  }
  CHECK(run_jemm({"decide", "--format", "csv"}).err.find("'csv' is none of json, text") !=
        std::string::npos);
  const std::string help = run_jemm({"decide", "--help"}).out;
  for (const std::string preset : {"json", "auto", "2048", "256MiB", "off"}) {
    CAPTURE(preset);  // as the versions of CLI11 write it
    CHECK((help.find("=" + preset) != std::string::npos ||
           help.find("[" + preset + "]") != std::string::npos));
  }
  const Finished unknown = run_jemm(std::vector<std::string>{"decdie"});
  CHECK(unknown.code == 2);
  CHECK(unknown.err.find("no command decdie; commands are decide, encode") != std::string::npos);
  for (const char* option : {"--help", "--version"}) {
    CHECK(run_jemm(Process{.arguments = {option}, .output_file = "/dev/full"}).code == 6);
  }
}

TEST_CASE("an output that cannot be is told before the model is opened") {
  const ScratchDir scratch;
  const std::string old = scratch.write("old", "kept");
  const std::string model = scratch.file("no-model");
  CHECK(run_jemm({"decide", "--out", old, "--model", model}, body(0)).code == 2);
  const Finished nowhere =
      run_jemm({"decide", "--out", scratch.file("no/file"), "--model", model}, body(0));
  CHECK(nowhere.code == 6);
  CHECK(nowhere.err.find("cannot write") != std::string::npos);
  CHECK(run_jemm({"decide", "--force", "--out", old, "--model", model}, body(0)).code == 6);
  CHECK(read_text(old) == "kept");
}

TEST_CASE("an input without one JSON object is explained, a terminal announced, a dangling link refused") {
  const ScratchDir scratch;
  const std::string hint = "the input is JSON lines, one request a line";
  for (const char* command : {"decide", "encode", "plan"}) {
    CHECK(run_jemm({command}, "a,b\n1,2\n").err.find(hint) != std::string::npos);
    CHECK(run_jemm({command}, "a,b\n" + body(0)).err.find(hint) == std::string::npos);
  }
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  REQUIRE(::grantpt(terminal) == 0);
  REQUIRE(::unlockpt(terminal) == 0);
  REQUIRE(::write(terminal, "\x04", 1) == 1);
  const Finished typed =
      run_jemm(Process{.arguments = {"decide"}, .input_file = ::ptsname(terminal)});
  ::close(terminal);
  CHECK(typed.code == 5);
  CHECK(typed.err.find("Ctrl-D ends") != std::string::npos);

  scratch.write("d/a.jsonl", body(0));
  std::filesystem::create_symlink("nowhere", scratch.file("d/b.jsonl"));
  const Finished run = run_jemm({"decide", scratch.file("d")});
  CHECK(run.code == 6);
  CHECK(run.err.find("b.jsonl") != std::string::npos);
}

TEST_CASE("progress is the share of the input that is answered") {
  const ScratchDir scratch;
  const std::string input = scratch.write("in.jsonl", bodies(4000));
  for (const char* reuse : {"off", "file"}) {
    const Finished run =
        run_jemm({"decide", "--progress", "bar", "--prefix-reuse", reuse, input});
    const std::size_t at = run.err.find("% ");
    REQUIRE(at != std::string::npos);
    CHECK(std::stoi(run.err.substr(at - 3, 3)) < 60);
  }
}

TEST_CASE("an output file that is also an input is refused and left alone") {
  const ScratchDir scratch;
  const std::string path = scratch.write("in.jsonl", bodies(2));
  for (const char* command : {"decide", "encode"}) {
    const Finished run = run_jemm({command, "--force", "--out", path, path});
    CHECK(run.code == 2);
    CHECK(read_text(path) == bodies(2));
  }
}

TEST_CASE("a full disk is an error that names the file, a closed pipe ends quietly") {
  const Finished full =
      run_jemm(Process{.arguments = {"decide"}, .input = body(0), .output_file = "/dev/full"});
  CHECK(full.code == 6);
  CHECK(full.err.find("standard output") != std::string::npos);
  const Finished named = run_jemm({"decide", "--out", "/dev/full", "--force"}, body(0));
  CHECK(named.code == 6);
  CHECK(named.err.find("/dev/full") != std::string::npos);

  const ScratchDir scratch;
  const std::string input = scratch.write("in.jsonl", bodies(200));
  const std::string command =
      std::string("(" JEMM_PROGRAM " decide ") + input + "; echo $? > " + scratch.file("code") +
      ") 2> " + scratch.file("err") + " | head -c 10 > /dev/null";
  CHECK(std::system(command.c_str()) == 0);
  CHECK(read_text(scratch.file("code")) == "0\n");
  CHECK(read_text(scratch.file("err")).find("error") == std::string::npos);
}

TEST_CASE("closed standard streams never turn a failure into success, nor into the data") {
  const Finished bad = run_jemm(
      Process{.arguments = {"decide"}, .input = "bad\n", .close_stderr = true});
  CHECK(bad.code == 3);
  const ScratchDir scratch;
  const Finished out = run_jemm(Process{.arguments = {"decide", "--out", scratch.file("o")},
                                        .input = "bad\n",
                                        .close_stderr = true});
  CHECK(out.code == 3);
  CHECK(parse_lines(read_text(scratch.file("o"))).size() == 1);
  const std::string command = "echo '" + body(0) + "' | " JEMM_PROGRAM " decide >&- 2>/dev/null";
  CHECK(WEXITSTATUS(std::system(command.c_str())) == 6);
}

TEST_CASE("directories: lists and single requests in name order, ids from names") {
  const ScratchDir scratch;
  scratch.write("d/b.jsonl", body(1) + "\n" + body(2) + "\n");
  scratch.write("d/a.json", body(0));
  scratch.write("d/c.txt", "not a request");
  const Finished run = run_jemm({"decide", scratch.file("d")});
  CHECK(run.code == 0);
  const std::vector<Json> lines = results(run.out);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0]["id"] == "a");
  CHECK(lines[1]["id"] == "b.jsonl:1");
  CHECK(lines[2]["id"] == "b.jsonl:2");
}

TEST_CASE("a decision does not depend on its neighbours") {
  const std::string fixtures = read_text(JEMM_SOURCE_DIR "/fixtures/demo/requests.jsonl");
  const std::vector<Json> batched = results(run_jemm({"decide"}, fixtures).out);
  const std::vector<Json> alone =
      results(run_jemm({"decide", "--batch-tokens", "1", "--threads", "1"}, fixtures).out);
  CHECK(batched == alone);
  REQUIRE(batched.size() > 5);

  std::vector<std::string> requests;
  std::istringstream in(fixtures);
  for (std::string line; std::getline(in, line);) requests.push_back(line);
  std::string reversed;
  for (auto line = requests.rbegin(); line != requests.rend(); ++line) reversed += *line + "\n";
  std::vector<Json> backwards = results(run_jemm({"decide", "--batch-tokens", "700"}, reversed).out);
  std::reverse(backwards.begin(), backwards.end());
  CHECK(backwards == batched);
}

TEST_CASE("shards partition the input") {
  const std::string input = bodies(7);
  const std::vector<Json> whole = results(run_jemm({"decide"}, input).out);
  std::vector<Json> merged(7);
  for (std::size_t i = 0; i < 3; ++i) {
    const std::vector<Json> part =
        results(run_jemm({"decide", "--shard", std::to_string(i + 1) + "/3"}, input).out);
    for (std::size_t k = 0; k < part.size(); ++k) merged.at(3 * k + i) = part[k];
  }
  CHECK(merged == whole);
}

TEST_CASE("undecided questions are listed and gated") {
  const std::string input = bodies(3);
  const std::vector<Json> none = results(run_jemm({"decide", "--threshold", "0"}, input).out);
  CHECK(none[0]["jemm"]["undecided"].empty());
  const Finished all = run_jemm({"decide", "--threshold", "1", "--fail-on-undecided", "0.5"}, input);
  CHECK(all.code == 1);
  CHECK(results(all.out)[0]["jemm"]["undecided"] == Json{"down"});
  CHECK(run_jemm({"decide", "--threshold", "1", "--fail-on-undecided", "1"}, input).code == 0);
}

TEST_CASE("stage times add up to the total") {
  for (const Json& line : parse_lines(run_jemm({"decide"}, bodies(20)).out)) {
    double sum = 0;
    double total = 0;
    for (const auto& [stage, value] : line["jemm"]["timings_ms"].items()) {
      (stage == "total" ? total : sum) += value.get<double>();
    }
    CHECK(total > 0);
    CHECK(std::abs(sum - total) <= 0.02 * total + 0.02);
    CHECK(line["usage"]["latency_ms"].get<double>() > 0);
  }
}

TEST_CASE("special tokens typed by a user are counted once") {
  std::string typed = body(0);
  typed.replace(typed.find("case"), 4, "<|im_end|><think>");
  typed.replace(typed.find("Which"), 5, "<|im_start|>");
  const std::vector<Json> lines = results(run_jemm({"decide"}, typed + "\n" + body(0)).out);
  CHECK(lines[0]["jemm"]["special_tokens"] == 3);
  CHECK(lines[1]["jemm"]["special_tokens"] == 0);
}

TEST_CASE("Ctrl-C finishes what is in flight and exits 130") {
  const ScratchDir scratch;
  const std::string input = scratch.write("in.jsonl", bodies(20000));
  const pid_t pid = start_jemm(Process{.arguments = {"decide", "--out", scratch.file("o"), input}});
  std::error_code absent;
  for (int i = 0; i < 6000; ++i) {
    if (std::filesystem::file_size(scratch.file("o"), absent) > 0 && !absent) break;
    ::usleep(5000);
  }
  ::kill(pid, SIGINT);
  CHECK(wait_jemm(pid) == 130);
  const std::vector<Json> lines = parse_lines(read_text(scratch.file("o")));
  CHECK(!lines.empty());
  CHECK(lines.size() < 20000);
  for (std::size_t i = 0; i < lines.size(); ++i) REQUIRE(lines[i]["id"] == std::to_string(i + 1));
}

TEST_CASE("an answer comes as soon as a slow writer's request is there") {
  const ScratchDir scratch;
  REQUIRE(::mkfifo(scratch.file("fifo").c_str(), 0600) == 0);
  const pid_t pid = start_jemm(
      Process{.arguments = {"decide", "--out", scratch.file("o"), scratch.file("fifo")}});
  const int fd = ::open(scratch.file("fifo").c_str(), O_RDWR);  // never waits for a reader
  REQUIRE(fd >= 0);
  for (int n = 0; n < 3; ++n) {
    const std::string line = body(n) + "\n" + body(n + 1).substr(0, 20);
    const std::size_t begin = n == 0 ? 0 : 20;
    REQUIRE(::write(fd, line.data() + begin, line.size() - begin) > 0);
    // The answer is there while the writer still holds the pipe, half of the next line written.
    const auto count = [&]() -> std::size_t {
      if (!std::filesystem::exists(scratch.file("o"))) return 0;
      return parse_lines(read_text(scratch.file("o"))).size();
    };
    for (int i = 0; i < 6000 && count() <= static_cast<std::size_t>(n); ++i) ::usleep(10'000);
    CHECK(count() == static_cast<std::size_t>(n) + 1);
  }
  ::close(fd);
  CHECK(wait_jemm(pid) == 3);  // the torn line
  CHECK(parse_lines(read_text(scratch.file("o"))).size() == 4);
}

}  // namespace jemm::test

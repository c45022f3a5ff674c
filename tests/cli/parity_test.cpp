// jemm parity as a user runs it: verdicts, exit statuses, reports, and what must never pass.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>

#include "base/sha256.h"
#include "cli/process.h"
#include "cli/results.h"

namespace jemm::test {
namespace {

const std::string kSource = JEMM_SOURCE_DIR;
const std::string kTinyModel =
    kSource + "/fixtures/tiny-a/base+" + kSource + "/fixtures/tiny-a/adapter";
const std::string kText = kSource + "/golden/text-fp32-cpu";
const std::string kCheap = "accept,prompt,tokens,logits,probabilities,decision,usage";

Finished parity(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "parity");
  arguments.insert(arguments.end(), {"--progress", "none"});
  return run_jemm(arguments);
}

Json manifest_of(const std::string& golden) {
  return Json::parse(read_text(golden + "/manifest.json"));
}

/// A golden directory with some of another one's cases.
class Copy {
 public:
  explicit Copy(const std::string& golden, std::size_t n_cases = 12)
      : manifest(manifest_of(golden)) {
    cases = parse_lines(read_text(golden + "/cases.jsonl"));
    cases.resize(std::min(n_cases, cases.size()));
  }

  /// Writes it as it is now and returns its path.
  std::string write() {
    manifest["cases"] = cases.size();
    std::string lines;
    for (const Json& line : cases) lines += line.dump() + "\n";
    return write_lines(lines);
  }
  std::string write_lines(const std::string& lines) {
    const std::string name = "g" + std::to_string(n_written_++);
    scratch.write(name + "/manifest.json", manifest.dump());
    scratch.write(name + "/cases.jsonl", lines);
    return scratch.file(name);
  }

  /// The first case that is answered.
  Json& answered() {
    return *std::find_if(cases.begin(), cases.end(),
                         [](const Json& line) { return line["status"] == "ok"; });
  }

  Json manifest;
  std::vector<Json> cases;
  ScratchDir scratch;

 private:
  int n_written_ = 0;
};

Finished against(const std::string& golden, const std::string& other) {
  return parity({"--golden", golden, "--against", other, "--stages", kCheap});
}

bool says(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("the random checkpoint passes preset fp32 at every stage") {
  for (const char* name : {"text-fp32-cpu", "image-fp32-cpu"}) {
    CAPTURE(name);
    const Finished run =
        parity({"--golden", kSource + "/golden/" + name, "--model", kTinyModel, "--bisect"});
    CHECK(run.code == 0);
    CHECK(says(run.out, "PASS"));
    CHECK(says(run.out, "first stage over budget: none"));
    CHECK(says(run.err, "gates fp32 (SHA-256 "));
  }
}

TEST_CASE("weights from the formula pass preset fp32, another seed is another checkpoint") {
  const std::string golden = kSource + "/golden/synthetic-tiny-a-fp32-cpu";
  CHECK(parity({"--golden", golden, "--model", "synthetic:" + kTinyModel}).code == 0);
  const Finished seed =
      parity({"--golden", golden, "--model", "synthetic:" + kTinyModel + ",seed=2"});
  CHECK(seed.code == 3);
  CHECK(says(seed.err, "synthetic seed 2 against synthetic seed 1"));
  const Finished files = parity({"--golden", golden, "--model", kTinyModel});
  CHECK(files.code == 3);
  CHECK(says(files.err, "another checkpoint"));
  CHECK(says(files.err, "--model names the checkpoint to judge"));
}

TEST_CASE("the demonstration checkpoint passes preset fp32-trained, embedded or from files") {
  const std::string golden = kSource + "/golden/demo-fp32-cpu";
  CHECK(parity({"--golden", golden, "--preset", "fp32-trained"}).code == 0);
  CHECK(parity({"--golden", golden, "--preset", "fp32-trained", "--model",
                kSource + "/fixtures/demo/base+" + kSource + "/fixtures/demo/adapter"})
            .code == 0);
  const Finished other = parity({"--golden", golden, "--model", kTinyModel});
  CHECK(other.code == 3);
  CHECK(says(other.err, "another checkpoint"));
}

TEST_CASE("the tier without weights needs a base alone") {
  const std::string stages = "accept,prompt,tokens,image,positions";
  for (const char* name : {"contract", "bodies", "image-fp32-cpu", "synthetic-tiny-a-fp32-cpu"}) {
    CAPTURE(name);
    const Finished run = parity({"--golden", kSource + "/golden/" + name, "--model",
                                 kSource + "/fixtures/tiny-a/base", "--stages", stages});
    CHECK(run.code == 0);
    CHECK(says(run.out, "PASS"));
  }
}

TEST_CASE("the self-test passes") {
  const Finished run = parity({"--self-test"});
  CHECK(run.code == 0);
  CHECK(!says(run.out, "WRONG"));
  CHECK(says(run.out, "stale recurrent state at a split"));
#if defined(JEMM_FAULTS)
  CHECK(!says(run.out, "not in this build"));
#endif
}

TEST_CASE("goldens that cannot be judged are never a pass") {
  Copy copy(kText);
  const std::string sound = copy.write();
  CHECK(against(sound, sound).code == 0);
  CHECK(
      parity({"--golden", sound, "--against", sound, "--stages", kCheap, "--min-questions", "5000"})
          .code == 5);
  std::reverse(copy.cases.begin(), copy.cases.end());
  CHECK(against(sound, copy.write()).code == 0);  // pairs are made by id

  copy.cases.clear();
  const Finished empty = against(copy.write(), copy.write());
  CHECK(empty.code == 5);
  CHECK(says(empty.out, "ERROR"));

  Copy refused(kText, 1000);
  std::erase_if(refused.cases, [](const Json& line) { return line["status"] == "ok"; });
  REQUIRE(!refused.cases.empty());
  const Finished all_refused = against(refused.write(), refused.write());
  CHECK(all_refused.code == 5);
  CHECK(says(all_refused.out, "ERROR"));

  CHECK(parity({"--golden", copy.scratch.file("nowhere")}).code == 3);
  copy.scratch.write("bare/cases.jsonl", "");
  CHECK(parity({"--golden", copy.scratch.file("bare")}).code == 3);
  CHECK(parity({}).code == 2);
}

TEST_CASE("goldens of different checkpoints are never compared") {
  Copy copy(kText);
  const std::string sound = copy.write();
  copy.manifest["checkpoint_sha256"]["adapter_config.json"] = std::string(64, '0');
  const Finished other = against(sound, copy.write());
  CHECK(other.code == 3);
  CHECK(says(other.err, "adapter_config.json"));
  Copy seeded(kText);
  seeded.manifest["synthetic_seed"] = 1;
  CHECK(against(sound, seeded.write()).code == 3);
  CHECK(parity({"--golden", seeded.write(), "--model", kTinyModel, "--stages", kCheap}).code == 3);
}

TEST_CASE("cases and tensors without counterpart fail") {
  Copy copy(kText);
  const std::string sound = copy.write();
  const auto expect = [&](const std::string& golden, const std::string& other,
                          const std::string& words) {
    CAPTURE(words);
    const Finished run = against(golden, other);
    CHECK(run.code == 1);
    CHECK(says(run.out, "FAIL"));
    CHECK(says(run.out, words));
  };
  Copy fewer(kText, 11);
  const std::string short_one = fewer.write();
  expect(sound, short_one, "unmatched");
  expect(short_one, sound, "unmatched");
  Copy renamed(kText);
  renamed.answered()["id"] = "another";
  expect(sound, renamed.write(), "unmatched");
  Copy twice(kText);
  twice.cases.push_back(twice.cases.front());
  expect(sound, twice.write(), "duplicate");
  expect(twice.write(), sound, "duplicate");

  std::filesystem::copy(kText, copy.scratch.file("whole"),
                        std::filesystem::copy_options::recursive);
  CHECK(parity({"--golden", kText, "--against", copy.scratch.file("whole")}).code == 0);
  std::filesystem::remove(copy.scratch.file("whole/stages.safetensors"));
  const Finished missing = parity({"--golden", kText, "--against", copy.scratch.file("whole")});
  CHECK(missing.code == 1);
  CHECK(says(missing.out, "missing"));
}

TEST_CASE("tensors that a golden lost are missed") {
  const ScratchDir scratch;
  std::filesystem::copy(kText, scratch.file("g"));
  std::string bytes = read_text(scratch.file("g/stages.safetensors"));
  const std::size_t at = bytes.find("/0/layer.02\"");
  REQUIRE(at != std::string::npos);
  const auto with = [&](const std::string& name) {
    std::string changed = bytes;
    changed.replace(at, name.size(), name);
    scratch.write("g/stages.safetensors", changed);
    return parity({"--golden", scratch.file("g"), "--model", kTinyModel});
  };
  CHECK(with("/0/layer.02").code == 0);
  for (const char* name : {"/0/layer.2x", "/9/layer.02", "/0/final_no"}) {
    CAPTURE(name);
    const Finished run = with(name);
    CHECK(run.code == 1);
    CHECK(says(run.out, "missing"));
    CHECK(says(run.out, "layer.02"));
  }
  // Only a name that is not there is no tensors.
  std::filesystem::remove(scratch.file("g/stages.safetensors"));
  CHECK(parity({"--golden", scratch.file("g"), "--model", kTinyModel}).code == 0);
  std::filesystem::create_symlink("nowhere", scratch.file("g/stages.safetensors"));
  CHECK(parity({"--golden", scratch.file("g"), "--model", kTinyModel}).code == 3);
}

TEST_CASE("fields that a golden's mode has may not be lost in single cases") {
  for (const char* field : {"prompt", "token_ids", "logits"}) {
    CAPTURE(field);
    Copy copy(kText);
    copy.answered()["questions"][0].erase(field);
    const std::string golden = copy.write();
    const Finished run = against(golden, golden);
    CHECK(run.code == 3);
    CHECK(says(run.err, "line "));
  }
  Copy copy(kText);
  copy.answered().erase("response");
  const std::string golden = copy.write();
  CHECK(against(golden, golden).code == 3);
}

TEST_CASE("files that base and adapter both have are told apart") {
  Copy copy(kSource + "/golden/contract");
  const std::string stages = "accept,prompt,tokens";
  const auto judge = [&] {
    return parity({"--golden", copy.write(), "--model", kTinyModel, "--stages", stages}).code;
  };
  Json& hashes = copy.manifest["checkpoint_sha256"];
  const Json right = hashes["config.json"];
  hashes.erase("config.json");
  hashes["base/config.json"] = right;
  CHECK(judge() == 0);
  hashes["base/config.json"] = std::string(64, '0');
  CHECK(judge() == 3);
}

TEST_CASE("output that cannot be written is an error of its own") {
  const ScratchDir scratch;
  const std::string file = scratch.write("file", "");
  CHECK(parity({"--golden", kText, "--against", kText, "--report", file + "/report"}).code == 6);
  CHECK(run_jemm(Process{.arguments = {"parity", "--golden", kText, "--against", kText},
                         .output_file = "/dev/full"})
            .code == 6);
}

TEST_CASE("damaged goldens are named, not judged") {
  Copy copy(kText);
  const std::string sound = copy.write();
  std::string lines = read_text(sound + "/cases.jsonl");
  const auto broken = [&](const std::string& text) {
    const Finished run = against(copy.write_lines(text), sound);
    CHECK(run.code == 3);
    CHECK(says(run.err, "error: "));
    return run.err;
  };
  broken(lines.substr(0, lines.size() / 2));
  CHECK(says(broken(lines + "\n{\"id\": \"x\"\n"), "cases.jsonl"));
  CHECK(says(broken(lines.substr(0, lines.find('\n') + 1)), "the manifest counts"));
  copy.manifest["format"] = "jemm-golden/2";
  CHECK(says(broken(lines), "format"));
}

TEST_CASE("what drifts is DRIFT, and noise can make it WITHIN-NOISE") {
  Copy copy(kText);
  const std::string sound = copy.write();
  const auto move = [](Copy& other, double by) {
    for (Json& line : other.cases) {
      if (line["status"] != "ok") continue;
      for (auto& [id, answer] : line["response"]["answers"].items()) {
        if (answer["type"] != "choice") continue;
        auto p = answer["probabilities"].begin();
        p.value() = p->get<double>() + by;
        ++p;
        p.value() = p->get<double>() - by;
      }
    }
    return other.write();
  };
  Copy near(kText);
  Copy second(kText);
  const std::string second_path = move(second, -9e-4);
  const std::string near_path = move(near, 1e-3);
  const std::vector<std::string> arguments = {"--golden", sound,      "--against",
                                              near_path,  "--stages", "accept,probabilities"};
  CHECK(says(parity(arguments).out, "DRIFT"));
  CHECK(parity(arguments).code == 1);
  std::vector<std::string> with_noise = arguments;
  with_noise.insert(with_noise.end(), {"--noise", second_path});
  const Finished noisy = parity(with_noise);
  CHECK(noisy.code == 0);
  CHECK(says(noisy.out, "WITHIN-NOISE"));
  // Without tensors it tells no noise of them, and strict has no other budget.
  std::filesystem::copy(kText, copy.scratch.file("tensors"));
  const Finished no_tensors = parity({"--golden", kText, "--against", copy.scratch.file("tensors"),
                                      "--noise", near_path, "--preset", "strict"});
  CHECK(no_tensors.code == 3);
  // A second golden of other cases tells no noise.
  Copy fewer(kText, 5);
  std::vector<std::string> unusable = arguments;
  unusable.insert(unusable.end(), {"--noise", fewer.write()});
  CHECK(parity(unusable).code == 3);
}

TEST_CASE("gates are data: printed, read back, and refused when not understood") {
  const ScratchDir scratch;
  for (const char* preset : {"fp32", "fp32-trained", "strict", "system1-omni"}) {
    const Finished printed = parity({"--print-gates", "--preset", preset});
    CHECK(printed.code == 0);
    const std::string file = scratch.write("gates.json", printed.out);
    CHECK(parity({"--print-gates", "--gates", file}).out == printed.out);
  }
  CHECK(parity({"--print-gates", "--preset", "soft"}).code == 2);
  const std::string bad = scratch.write("bad.json", R"({"format":"jemm-gates/1","x":1})");
  CHECK(parity({"--golden", kText, "--gates", bad, "--against", kText}).code == 3);
  CHECK(parity({"--golden", kText, "--stages", "tokenz", "--against", kText}).code == 2);
}

TEST_CASE("reports: written whole, never over another one, the same each time") {
  const ScratchDir scratch;
  Copy copy(kText);
  const std::string golden = copy.write();
  const std::string directory = scratch.file("report");
  const std::vector<std::string> arguments = {"--golden", golden, "--against", golden,
                                              "--stages", kCheap, "--report",  directory};
  CHECK(parity(arguments).code == 0);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"gates.json", "junit.xml", "questions.jsonl",
                                          "report.html", "report.json", "report.md"});
  const std::string first = read_text(directory + "/report.json");
  const Json report = Json::parse(first);
  CHECK(report["verdict"] == "PASS");
  CHECK(says(parity(arguments).err, "--force"));
  CHECK(parity(arguments).code == 2);
  // The gates beside it are those that were hashed, and can be used again.
  std::vector<std::string> same_gates = arguments;
  same_gates.back() = scratch.file("again");
  same_gates.insert(same_gates.end(), {"--gates", directory + "/gates.json"});
  CHECK(parity(same_gates).code == 0);
  CHECK(read_text(scratch.file("again/gates.json")) == read_text(directory + "/gates.json"));
  CHECK(sha256_hex(read_text(directory + "/gates.json")) == report["gates_sha256"]);
  const ScratchDir other;
  other.write("out/gates.json", "mine");
  std::vector<std::string> beside = arguments;
  beside.back() = other.file("out");
  CHECK(parity(beside).code == 2);
  CHECK(read_text(other.file("out/gates.json")) == "mine");
  std::vector<std::string> again = arguments;
  again.push_back("--force");
  CHECK(parity(again).code == 0);
  CHECK(read_text(directory + "/report.json") == first);
  CHECK(parse_lines(read_text(directory + "/questions.jsonl")).size() ==
        report["counts"]["questions"]);
  CHECK(says(parity(again).err, report["gates_sha256"].get<std::string>()));
  std::filesystem::remove(directory + "/report.md");
  std::filesystem::create_symlink("elsewhere", directory + "/report.md");
  CHECK(parity(again).code == 2);
  CHECK(std::filesystem::is_symlink(directory + "/report.md"));
  CHECK(read_text(directory + "/report.json") == first);
}

TEST_CASE("a redacted report holds no word of the requests") {
  const ScratchDir scratch;
  Copy copy(kText);
  Json& answered = copy.answered();
  answered["questions"][0]["prompt"] =
      "CONFIDENTIAL " + answered["questions"][0]["prompt"].get<std::string>();
  const std::string changed = copy.write();
  const std::string directory = scratch.file("report");
  const Finished run = parity({"--golden", kText, "--against", changed, "--stages", kCheap,
                               "--report", directory, "--redact", "--bisect"});
  CHECK(run.code == 1);
  std::string all = run.out + run.err;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    all += read_text(entry.path().string());
  }
  CHECK(!says(all, "CONFIDENTIAL"));
  CHECK(!says(all, answered["id"].get<std::string>()));
  CHECK(!says(all, scratch.file("")));
  CHECK(!says(all, copy.scratch.file("")));
}

TEST_CASE("a golden of many cases is judged in little memory") {
  Copy copy(kText);
  const Json pattern = copy.answered();
  const auto write = [&](int n_cases) {
    std::string lines;
    for (int i = 0; i < n_cases; ++i) {
      Json line = pattern;
      line["id"] = "case-" + std::to_string(i);
      line["questions"][0]["prompt"] = "short";
      line["questions"][0]["token_ids"] = {1, 2, 3};
      lines += line.dump() + "\n";
    }
    copy.manifest["cases"] = n_cases;
    return copy.write_lines(lines);  // and let go: a child begins with its parent's peak
  };
  const auto rss = [&](int n_cases) {
    const std::string golden = write(n_cases);
    const Finished run = parity({"--golden", golden, "--against", golden, "--stages", kCheap,
                                 "--report", copy.scratch.file("r" + std::to_string(n_cases))});
    CHECK(run.code == 0);
    return run.max_rss_kib;
  };
#if defined(__SANITIZE_ADDRESS__)
  constexpr int kManyCases = 10'000;
  constexpr long kLimitKib = 400 * 1024;  // the sanitizer's quarantine grows with every allocation
#else
  constexpr int kManyCases = 100'000;
  constexpr long kLimitKib = 32 * 1024;
#endif
  const long few = rss(1000);
  const long many = rss(kManyCases);
  MESSAGE("1,000 cases: " << few << " KiB, " << kManyCases << " cases: " << many << " KiB");
  CHECK(many - few < kLimitKib);
}

TEST_SUITE("extra") {
  TEST_CASE("between full-size references lies the noise that is known") {
    const char* extra = std::getenv("JEMM_EXTRA_GOLDEN");
    if (extra == nullptr) {
      MESSAGE("JEMM_EXTRA_GOLDEN is not set");
      return;
    }
    const std::string fp32 = std::string(extra) + "/27b-fp32-h200";
    const auto distance = [&](const std::string& other) {
      const ScratchDir scratch;
      const std::string report = scratch.file("report");
      CHECK(parity({"--golden", fp32, "--against", extra + ("/" + other), "--preset", "strict",
                    "--stages", kCheap, "--report", report})
                .code == 1);
      return Json::parse(read_text(report + "/report.json"));
    };
    const Json fla = distance("27b-bf16-fla-h200");
    CHECK(fla["distance"]["drift"]["median"].get<double>() ==
          doctest::Approx(0.0228).epsilon(0.01));
    CHECK(fla["distance"]["drift"]["max"].get<double>() == doctest::Approx(0.107).epsilon(0.01));
    CHECK(fla["agreement"]["agree"] == 54);
    const Json torch = distance("27b-bf16-torch-h200");
    CHECK(torch["distance"]["drift"]["median"].get<double>() ==
          doctest::Approx(0.0196).epsilon(0.01));
    CHECK(torch["distance"]["drift"]["max"].get<double>() == doctest::Approx(0.069).epsilon(0.01));
    CHECK(torch["agreement"]["agree"] == 56);
    const Finished judged =
        parity({"--golden", fp32, "--against", std::string(extra) + "/27b-bf16-torch-h200",
                "--noise", std::string(extra) + "/27b-bf16-fla-h200", "--stages", kCheap});
    CHECK(judged.code == 0);
    CHECK(says(judged.out, "WITHIN-NOISE"));
  }
}

}  // namespace jemm::test

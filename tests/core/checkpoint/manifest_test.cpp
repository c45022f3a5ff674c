// The manifest's text, and the checks that an exported directory's files go through.
#include "checkpoint/manifest.h"

#include <sys/stat.h>

#include "base/sha256.h"
#include "checkpoint/export_files.h"
#include "checkpoint/input_hashes.h"
#include "core/checkpoint/export_support.h"
#include "core/checkpoint/memory_source.h"

namespace jemm {
namespace {

const std::string kHash(64, 'a');

ExportManifest sample() {
  ExportManifest manifest;
  manifest.exporter = "jemm 1";
  manifest.base = "Qwen";
  manifest.adapter = "JEMM";
  manifest.fingerprint = kHash;
  manifest.lora = {LoraMode::kUnmerged, 496, {16}, {2.0}};
  for (int i = 0; i < 32; ++i) manifest.prompt.label_ids[static_cast<std::size_t>(i)] = 32 + i;
  manifest.prompt.text_framing = "<a>{prompt}\n";
  manifest.prompt.image_framing = "<a><i>{prompt}\n";
  manifest.prompt.template_sha256 = kHash;
  manifest.prompt.tokenizer_class = "Qwen2Tokenizer";
  manifest.prompt.tokenizer_pattern = "qwen2";
  manifest.prompt.text_token_budget = 8192;
  manifest.prompt.image_token_budget = 3072;
  manifest.decision = {1.3480874159655591, 1.5, 0.9};
  manifest.inputs = {{"base/config.json", 5, 1, kHash},
                     {"adapter/adapter_config.json", 6, 2, std::string(64, 'b')}};
  manifest.outputs = {{"config.json", 5, 1, kHash}};
  return manifest;
}

std::string edited(const std::function<void(nlohmann::json&)>& edit) {
  std::string text = manifest_text(sample());
  edit_json(text, edit);
  return text;
}

std::string manifest_refusal(const std::function<void(nlohmann::json&)>& edit) {
  return refusal([&] { parse_manifest(edited(edit), "FILE"); });
}

TEST_CASE("a manifest survives its text") {
  const ExportManifest manifest = sample();
  const std::string text = manifest_text(manifest);
  const ExportManifest again = parse_manifest(text, "FILE");
  CHECK(again.exporter == "jemm 1");
  CHECK(again.prompt == manifest.prompt);
  CHECK(again.lora.n_pairs == 496);
  CHECK(again.lora.scales == std::vector<double>{2.0});
  CHECK(again.decision.temperature == 1.3480874159655591);
  CHECK_FALSE(again.synthetic_seed.has_value());
  CHECK(manifest_text(again) == text);
  const nlohmann::json json = nlohmann::json::parse(text);
  CHECK(json["format"] == "jemm-export/1");
  CHECK(json["pins"]["base"]["revision"] == "1d4bf0f2ff6012fd82039f2fa52739d0dd7c60c0");
  CHECK(json["pins"]["adapter"]["repository"] == "MaestroYan/JEMM");
  CHECK(json["pins"]["reference"]["revision"] == "6822fe0fd53c5e6670af6ba99fb2c857a661e532");

  ExportManifest synthetic = manifest;
  synthetic.synthetic_seed = 4294967295U;
  CHECK(parse_manifest(manifest_text(synthetic), "FILE").synthetic_seed == 4294967295U);
}

TEST_CASE("input hashes carry a golden's names") {
  ExportManifest manifest = sample();
  manifest.inputs.push_back({"base/adapter_config.json", 1, 1, kHash});
  const auto hashes = recorded_hashes(manifest);
  CHECK(hashes.size() == 5);  // two names, and three with their directory's
  CHECK(hashes.at("config.json") == kHash);
  CHECK(hashes.at("adapter_config.json") == std::string(64, 'b'));  // the adapter's
  CHECK(hashes.at("base/adapter_config.json") == kHash);
  CHECK(hashes.at("adapter/adapter_config.json") == std::string(64, 'b'));
}

TEST_CASE("files beside no manifest are hashed when asked for") {
  const EditableCheckpoint files("tiny-a");
  const CheckpointFiles pair{files.base, files.adapter};
  const auto hashes =
      input_hashes(pair, std::vector<std::string>{"config.json", "decision_config.json", "absent"});
  CHECK(hashes.size() == 2);
  const nlohmann::json golden = read_golden("text-fp32-cpu/manifest.json")["checkpoint_sha256"];
  CHECK(hashes.at("config.json") == golden["config.json"]);
  CHECK(hashes.at("decision_config.json") == golden["decision_config.json"]);
  const auto placed =
      input_hashes(pair, std::vector<std::string>{"base/config.json", "adapter/config.json",
                                                  "adapter/decision_config.json"});
  CHECK(placed.size() == 2);
  CHECK(placed.at("base/config.json") == golden["config.json"]);
  CHECK(placed.at("adapter/decision_config.json") == golden["decision_config.json"]);
}

TEST_CASE("a manifest that is not one is refused by key") {
  CHECK(manifest_refusal([](auto& j) { j["format"] = "jemm-export/2"; }) ==
        "FILE: format \"jemm-export/2\" is not supported, only \"jemm-export/1\"");
  for (const char* key : {"format", "exporter", "source", "fingerprint", "lora", "prompt",
                          "calibration", "inputs", "outputs"}) {
    CHECK(manifest_refusal([key](auto& j) { j.erase(key); }) ==
          "FILE: " + std::string(key) + " is missing");
  }
  CHECK(manifest_refusal([](auto& j) { j["lora"]["mode"] = "folded"; }) ==
        "FILE: lora: mode \"folded\" is not supported");
  CHECK(manifest_refusal([](auto& j) { j["prompt"]["label_ids"].erase(0); }) ==
        "FILE: prompt: label_ids holds 31 entries, not 32");
  CHECK(manifest_refusal([](auto& j) { j["prompt"]["label_ids"][3] = -1; }) ==
        "FILE: prompt: label_ids may not hold -1");
  CHECK(manifest_refusal([](auto& j) { j["calibration"].erase("threshold"); }) ==
        "FILE: calibration: threshold is missing");
  CHECK(manifest_refusal([](auto& j) { j["outputs"][0]["sha256"] = "A"; }) ==
        "FILE: outputs: sha256 \"A\" is no SHA-256");
  CHECK(manifest_refusal([](auto& j) { j["outputs"].push_back(j["outputs"][0]); }) ==
        "FILE: outputs lists \"config.json\" twice");
  for (const char* name : {"../config.json", "a/b", "", ".", "..", "base/..", "x\\y", "a\nb"}) {
    CHECK(holds(manifest_refusal([name](auto& j) { j["outputs"][0]["name"] = name; }),
                "is no file of the directory"));
  }
}

/// A directory with two files and their manifest.
struct SmallExport {
  Scratch scratch;
  fs::path directory = scratch / "export";

  SmallExport() {
    fs::create_directory(directory);
    ExportManifest manifest = sample();
    manifest.outputs.clear();
    for (const auto& [name, content] :
         std::map<std::string, std::string>{{"config.json", "{}"}, {"w.safetensors", "weights"}}) {
      write_all(directory / name, content);
      manifest.outputs.push_back({name, content.size(), 0, sha256_hex(content)});
    }
    write_all(directory / kManifestFile, manifest_text(manifest));
  }
};

/// All files, as opening a checkpoint and asking for its fingerprint do.
void verify(const ExportFiles& files, Trust trust) {
  files.verify_small();
  files.verify_large(trust);
}

TEST_CASE("an export holds what its manifest lists and nothing else") {
  const SmallExport small;
  write_all(small.directory / "model.safetensors", "stray");
  const ExportFiles files(small.directory);
  CHECK(files.contains("config.json"));
  CHECK_FALSE(files.contains("model.safetensors"));
  CHECK(files.open("config.json").text() == "{}");
  CHECK(holds(refusal([&] { files.open("model.safetensors"); }),
              "the manifest lists no file \"model.safetensors\""));
  CHECK_NOTHROW(verify(files, Trust::kHash));
  CHECK_NOTHROW(verify(files, Trust::kSizeAndTime));
}

TEST_CASE("what was altered is named") {
  const SmallExport small;
  const std::string where = small.directory.string() + " is not as it was exported: ";
  write_all(small.directory / "w.safetensors", "Weights");
  CHECK(refusal([&] { verify(ExportFiles(small.directory), Trust::kHash); }) ==
        where + "the SHA-256 of \"w.safetensors\" differs from jemm_export.json");
  // Small files are hashed whatever is trusted, and when they are opened.
  CHECK(holds(refusal([&] { verify(ExportFiles(small.directory), Trust::kSizeAndTime); }),
              "the SHA-256 of \"w.safetensors\""));
  CHECK(holds(refusal([&] { ExportFiles(small.directory).open("w.safetensors"); }),
              "w.safetensors is not as it was exported: its SHA-256 differs"));
  write_all(small.directory / "w.safetensors", "cut");
  fs::remove(small.directory / "config.json");
  CHECK(refusal([&] { ExportFiles{small.directory}; }) ==
        where + "files are missing: \"config.json\"; \"w.safetensors\" has 3 bytes, not 7");
}

TEST_CASE("trust goes by size and time for large files alone") {
  const SmallExport small;
  const fs::path large = small.directory / "w.safetensors";
  fs::resize_file(large, ExportFiles::kSmallFile + 1);
  struct stat info {};
  REQUIRE(::stat(large.c_str(), &info) == 0);
  std::string text = read_all(small.directory / kManifestFile);
  const std::int64_t mtime = info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec;
  const auto record = [&](std::int64_t time) {
    edit_json(text, [&](auto& j) {
      j["outputs"][1]["size"] = ExportFiles::kSmallFile + 1;
      j["outputs"][1]["mtime_ns"] = time;  // and a hash that is wrong
    });
    write_all(small.directory / kManifestFile, text);
  };
  record(mtime);
  CHECK_NOTHROW(verify(ExportFiles(small.directory), Trust::kSizeAndTime));
  CHECK_NOTHROW(ExportFiles(small.directory).open("w.safetensors"));
  CHECK(holds(refusal([&] { verify(ExportFiles(small.directory), Trust::kHash); }),
              "\"w.safetensors\" differs"));
  record(mtime + 1);
  CHECK(holds(refusal([&] { verify(ExportFiles(small.directory), Trust::kSizeAndTime); }),
              "\"w.safetensors\" differs"));
}

TEST_CASE("directories that are no finished export") {
  const Scratch scratch;
  fs::create_directory(scratch / "x");
  CHECK(refusal([&] { ExportFiles(scratch / "x"); }) ==
        (scratch / "x").string() + " is no export: it has no jemm_export.json");
  write_all(scratch / "x/jemm_export.partial.json", "{}");
  CHECK(is_unfinished_export(scratch / "x"));
  CHECK(holds(refusal([&] { ExportFiles(scratch / "x"); }), "is an unfinished export"));
}

}  // namespace
}  // namespace jemm

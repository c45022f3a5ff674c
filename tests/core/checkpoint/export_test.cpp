// Exports hold exactly what their inputs hold, go on where they were interrupted, and are refused
// by name.
#include "checkpoint/export.h"

#include <sys/stat.h>

#include <array>
#include <cmath>
#include <cstring>

#include "checkpoint/export_files.h"
#include "checkpoint/input_hashes.h"
#include "checkpoint/registry.h"
#include "checkpoint/safetensors.h"
#include "core/checkpoint/export_support.h"
#include "core/checkpoint/memory_source.h"

namespace jemm {
namespace {

constexpr const char* kSingle = "base/model.safetensors";
constexpr const char* kShard1 = "base/model-00001-of-00002.safetensors";
constexpr const char* kShard2 = "base/model-00002-of-00002.safetensors";
constexpr const char* kIndex = "base/model.safetensors.index.json";
constexpr const char* kPairs = "adapter/adapter_model.safetensors";

/// A fixture on disk and where it is exported to.
struct Exported {
  Scratch scratch;
  fs::path from = scratch / "from";
  fs::path out = scratch / "out";
  ExportJob job;
  ExportSummary summary;

  explicit Exported(const std::string& fixture) {
    copy_fixture(fixture, from);
    job.base = from / "base";
    job.adapter = from / "adapter";
    job.out = out;
    job.exporter = "test";
    for (std::size_t i = 0; i < 32; ++i) {
      job.prompt.label_ids[i] = static_cast<std::int32_t>(3 * i + 1);
    }
  }

  void edit(const char* file, const std::function<void(SafetensorsParts&)>& change) const {
    std::string content = read_all(from / file);
    edit_safetensors(content, change);
    write_all(from / file, content);
  }
  void run() { summary = export_checkpoint(job); }
  std::string refused(ErrorKind kind = ErrorKind::kInput) {
    return refusal([&] { run(); }, kind);
  }
  std::unique_ptr<const Checkpoint> input() const {
    return open_checkpoint({open_directory(job.base), open_directory(job.adapter)});
  }
  std::shared_ptr<const ExportFiles> files() const {
    return std::make_shared<const ExportFiles>(out);
  }
  std::unique_ptr<const Checkpoint> output() const {
    return open_checkpoint({files(), files(), files()});
  }
  bool is_link(const std::string& name, const std::string& input) const {
    return fs::equivalent(out / name, from / input);
  }
};

bool equal(const Tensor& a, const Tensor& b) {
  return a.dtype == b.dtype && a.shape == b.shape &&
         std::equal(a.data.bytes.begin(), a.data.bytes.end(), b.data.bytes.begin(),
                    b.data.bytes.end());
}

/// Everything that an engine reads of `before` is in `after`, bit for bit.
void check_same(const Checkpoint& before, const Checkpoint& after,
                const std::array<std::int32_t, 32>& ids) {
  const TensorRegistry registry(before.config());
  for (const TensorInfo& info : registry.tensors()) {
    CAPTURE(info.name);
    if (info.role == TensorRole::kHead) {
      CHECK_THROWS_AS(after.tensor(info.name), Error);
      continue;
    }
    CHECK(equal(before.tensor(info.name), after.tensor(info.name)));
    if (!info.takes_lora) continue;
    const auto pair = before.lora(module_name(info));
    const auto exported = after.lora(module_name(info));
    REQUIRE(pair.has_value() == exported.has_value());
    if (!pair) continue;
    CHECK(equal(pair->a, exported->a));
    CHECK(equal(pair->b, exported->b));
    CHECK(pair->scale == exported->scale);
  }
  CHECK(equal(before.head_rows(ids), after.head_rows(ids)));
  CHECK(before.decision().temperature == after.decision().temperature);
  CHECK(before.fingerprint() == after.fingerprint());
}

TEST_CASE("an export holds what its inputs hold, and the head's label rows") {
  for (const char* fixture : {"tiny-a", "demo"}) {
    Exported e(fixture);
    e.run();
    const auto after = e.output();
    check_same(*e.input(), *after, e.job.prompt.label_ids);
    CHECK(after->lora_mode() == LoraMode::kUnmerged);
    std::array<std::int32_t, 1> other = {2};
    CHECK(refusal([&] { after->head_rows(other); }) ==
          e.out.string() + ": the head's row of token 2 was not exported");
    std::array<std::int32_t, 2> some = {94, 1};  // rows 31 and 0 of those kept
    CHECK(equal(after->head_rows(some), e.input()->head_rows(some)));
  }
}

TEST_CASE("files that need not change are links, others are written anew") {
  Exported e("demo");
  e.run();
  CHECK(e.is_link("model-00001-of-00002.safetensors", kShard1));
  CHECK_FALSE(e.is_link("model-00002-of-00002.safetensors", kShard2));  // holds the head
  CHECK(e.is_link("adapter_model.safetensors", kPairs));
  CHECK(e.is_link("tokenizer.json", "base/tokenizer.json"));
  CHECK(e.summary.n_linked == 11);
  CHECK(e.summary.n_written == 2);
  const std::string index = read_all(e.out / "model.safetensors.index.json");
  CHECK(holds(index, "lm_head.label_rows.weight"));
  CHECK_FALSE(index.find("lm_head.weight") != std::string::npos);
  const auto golden = read_golden("demo-fp32-cpu/manifest.json")["checkpoint_sha256"];
  const FileHashes hashes = recorded_hashes(e.files()->manifest());
  for (const auto& [name, hash] : golden.items()) CHECK(hashes.at(name) == hash);
  CHECK_FALSE(fs::exists(e.out / kJournalFile));
}

TEST_CASE("a download's symbolic links are followed") {
  Exported e("tiny-a");
  fs::rename(e.from / kSingle, e.scratch / "blob");
  fs::create_symlink(e.scratch / "blob", e.from / kSingle);
  fs::rename(e.from / "base/tokenizer.json", e.scratch / "blob2");
  fs::create_symlink(e.scratch / "blob2", e.from / "base/tokenizer.json");
  e.run();
  CHECK_FALSE(fs::is_symlink(e.out / "tokenizer.json"));
  CHECK(fs::equivalent(e.out / "tokenizer.json", e.scratch / "blob2"));
  check_same(*e.input(), *e.output(), e.job.prompt.label_ids);
}

TEST_CASE("multi-token heads are left out, a shard of nothing else too") {
  Exported e("demo");
  e.edit(kShard1, [](auto& p) { p.add("mtp.fc.weight", "I64", {1}, std::string(8, '\x7f')); });
  SafetensorsParts only;
  only.add("mtp.norm.weight", "BF16", {1}, std::string("\x80\x7f", 2));  // infinity, not looked at
  write_all(e.from / "base/mtp.safetensors", only.file());
  std::string index = read_all(e.from / kIndex);
  edit_json(index, [](auto& j) {
    j["weight_map"]["mtp.fc.weight"] = "model-00001-of-00002.safetensors";
    j["weight_map"]["mtp.norm.weight"] = "mtp.safetensors";
  });
  write_all(e.from / kIndex, index);
  e.run();
  CHECK_FALSE(fs::exists(e.out / "mtp.safetensors"));
  CHECK_FALSE(e.is_link("model-00001-of-00002.safetensors", kShard1));
  CHECK(read_all(e.out / "model.safetensors.index.json").find("mtp") == std::string::npos);
  CHECK(recorded_hashes(e.files()->manifest()).contains("mtp.safetensors"));
  check_same(*e.input(), *e.output(), e.job.prompt.label_ids);
}

TEST_CASE("tensors in F32 and F16 stay what they are") {
  Exported e("tiny-a");
  const std::string layer = "model.language_model.layers.0.linear_attn.";
  e.edit(kSingle, [&](auto& p) {
    p.remove(layer + "A_log");
    p.add(layer + "A_log", "F32", {6}, std::string(24, '\x3e'));
    p.remove(layer + "norm.weight");
    p.add(layer + "norm.weight", "F16", {16}, std::string(32, '\x3c'));
  });
  e.run();
  const auto after = e.output();
  CHECK(after->tensor(layer + "A_log").dtype == DType::kF32);
  CHECK(after->tensor(layer + "norm.weight").dtype == DType::kF16);
  check_same(*e.input(), *after, e.job.prompt.label_ids);
}

TEST_CASE("a tied head is read from the embedding, and nothing is rewritten") {
  Exported e("tiny-a");
  e.edit(kSingle, [](auto& p) { p.remove("lm_head.weight"); });
  std::string config = read_all(e.from / "base/config.json");
  edit_json(config, [](auto& j) { j["tie_word_embeddings"] = true; });
  write_all(e.from / "base/config.json", config);
  e.run();
  CHECK(e.is_link("model.safetensors", kSingle));
  const auto after = e.output();
  check_same(*e.input(), *after, e.job.prompt.label_ids);
  std::array<std::int32_t, 1> any = {2};
  CHECK(equal(after->head_rows(any), e.input()->head_rows(any)));
}

TEST_CASE("merged weights are rounded once") {
  for (const char* fixture : {"tiny-a", "demo"}) {
    Exported e(fixture);
    e.job.lora = LoraMode::kMerged;
    e.run();
    const auto before = e.input();
    const auto after = e.output();
    CHECK(after->lora_mode() == LoraMode::kMerged);
    CHECK(after->fingerprint() != before->fingerprint());
    CHECK_FALSE(e.files()->contains("adapter_model.safetensors"));
    std::size_t n_changed = 0;
    const TensorRegistry registry(before->config());
    for (const TensorInfo& info : registry.tensors()) {
      if (info.role == TensorRole::kHead) continue;
      const Tensor old = before->tensor(info.name);
      const Tensor now = after->tensor(info.name);
      const auto pair = info.takes_lora ? before->lora(module_name(info)) : std::nullopt;
      if (!pair) {
        CHECK(equal(old, now));
        continue;
      }
      CHECK_FALSE(after->lora(module_name(info)).has_value());
      REQUIRE(now.dtype == DType::kBf16);
      const Tensor wide = widened(old);
      const auto* w = reinterpret_cast<const float*>(wide.data.bytes.data());
      const auto* a = reinterpret_cast<const float*>(pair->a.data.bytes.data());
      const auto* b = reinterpret_cast<const float*>(pair->b.data.bytes.data());
      const auto* m = reinterpret_cast<const std::uint16_t*>(now.data.bytes.data());
      const auto rank = static_cast<std::size_t>(pair->a.shape[0]);
      const auto cols = static_cast<std::size_t>(old.shape[1]);
      std::size_t n_wrong = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(old.size()); ++i) {
        double sum = 0;
        for (std::size_t k = 0; k < rank; ++k) {
          sum += static_cast<double>(b[i / cols * rank + k]) * a[k * cols + i % cols];
        }
        // Half a unit of BF16's eight bits, and the product's own rounding in float.
        const double exact = w[i] + pair->scale * sum;
        const double error = std::abs(bf16_to_float(m[i]) - exact);
        n_wrong += error > std::ldexp(std::abs(exact), -8) * 1.001 + 1e-6;
      }
      CHECK(n_wrong == 0);
      ++n_changed;
    }
    CHECK(n_changed == e.files()->manifest().lora.n_pairs);
  }
}

TEST_CASE("a merge by hand") {
  Exported e("tiny-a");
  e.job.lora = LoraMode::kMerged;
  const std::string module = "model.language_model.layers.0.mlp.up_proj";
  const std::string pair = "base_model.model." + module;
  // Row 0 of W: 256 and -256, then 1; of s B A: 0.75, 0 and 2^-9 + 2^-20 (just over half a step).
  const auto put = [](std::string& data, std::size_t at, float value) {
    std::memcpy(data.data() + at, &value, sizeof value);
  };
  e.edit(kSingle, [&](auto& p) {
    std::string w = p.remove(module + ".weight");
    const std::uint16_t row[] = {0x4380, 0xC380, 0x3F80, 0x3F80};
    std::memcpy(w.data(), row, sizeof row);
    p.add(module + ".weight", "BF16", {static_cast<std::int64_t>(w.size() / 192), 96}, w);
  });
  e.edit(kPairs, [&](auto& p) {
    std::string a = p.remove(pair + ".lora_A.weight");
    std::string b = p.remove(pair + ".lora_B.weight");
    for (std::size_t k = 0; k < 4; ++k) {
      for (std::size_t j = 0; j < 4; ++j) put(a, (k * 96 + j) * 4, 0);
      put(b, k * 4, k == 0 ? 1.0F : 0.0F);
    }
    put(a, 0, 0.375F);  // the scale is 2
    put(a, 8, 0x1p-9F + 0x1p-20F);
    put(a, 12, 0x1p-9F);  // 1 + 2^-8: a tie, to even
    p.add(pair + ".lora_A.weight", "F32", {4, 96}, a);
    p.add(pair + ".lora_B.weight", "F32", {static_cast<std::int64_t>(b.size() / 16), 4}, b);
  });
  e.run();
  const Tensor merged = e.output()->tensor(module + ".weight");
  const auto* m = reinterpret_cast<const std::uint16_t*>(merged.data.bytes.data());
  CHECK(m[0] == 0x4380);  // the update of 0.75 is lost
  CHECK(m[1] == 0xC380);
  CHECK(m[2] == 0x3F81);  // 1 + 2^-8 + 2^-19 rounds up to 1 + 2^-7
  CHECK(m[3] == 0x3F80);
}

TEST_CASE("weights from the formula are written as files") {
  Exported e("tiny-a");
  fs::remove(e.from / kSingle);
  fs::remove(e.from / kPairs);
  e.job.synthetic_seed = 7;
  e.run();
  const auto formula =
      open_synthetic({open_directory(e.job.base), open_directory(e.job.adapter)}, 7);
  check_same(*formula, *e.output(), e.job.prompt.label_ids);
  CHECK(e.files()->manifest().synthetic_seed == 7U);

  ExportJob pair = e.job;
  pair.out = e.scratch / "pair";
  write_synthetic(pair);
  const auto stored =
      open_checkpoint({open_directory(pair.out / "base"), open_directory(pair.out / "adapter")});
  const TensorRegistry registry(stored->config());
  for (const TensorInfo& info : registry.tensors()) {
    CHECK(equal(stored->tensor(info.name), formula->tensor(info.name)));
    if (!info.takes_lora) continue;
    CHECK(equal(stored->lora(module_name(info))->b, formula->lora(module_name(info))->b));
  }
  CHECK(refusal([&] { write_synthetic(pair); }, ErrorKind::kUsage) ==
        pair.out.string() + " is not empty");

  // Merged, the same as merged from those files.
  e.job.out = e.scratch / "merged";
  e.job.lora = LoraMode::kMerged;
  e.run();
  ExportJob from_files = e.job;
  from_files.synthetic_seed.reset();
  from_files.base = pair.out / "base";
  from_files.adapter = pair.out / "adapter";
  from_files.out = e.scratch / "merged2";
  export_checkpoint(from_files);
  CHECK(read_all(e.job.out / "model-00001-of-00001.safetensors") ==
        read_all(from_files.out / "model-00001-of-00001.safetensors"));
}

TEST_CASE("values that are not finite are refused, by the export and by the fingerprint") {
  const std::string tensor = "model.visual.merger.norm.bias";
  for (const char* bits : {"\x80\x7f", "\x80\xff", "\xc0\x7f", "\x81\x7f"}) {
    Exported e("tiny-a");
    e.edit(kSingle, [&](auto& p) {
      const std::size_t at = p.header.at(tensor).at("data_offsets")[0];
      std::memcpy(p.data.data() + at + 6, bits, 2);
    });
    const std::string expected =
        (e.from / kSingle).string() + ": tensor \"" + tensor + "\": element 3 is not finite";
    CHECK(e.refused() == expected);
    CHECK(refusal([&] { e.input()->fingerprint(); }) == expected);
  }
  Exported e("tiny-a");
  e.edit(kPairs, [&](auto& p) { std::memcpy(p.data.data() + 4, "\x00\x00\x80\x7f", 4); });
  CHECK(holds(e.refused(), "element 1 is not finite"));
}

/// Interrupts the export at the n-th report of progress.
struct Interrupted {};
void interrupt(Exported& e, int n) {
  e.job.progress = [n](std::uint64_t, std::uint64_t) mutable {
    if (--n == 0) throw Interrupted{};
  };
  CHECK_THROWS_AS(e.run(), Interrupted);
  e.job.progress = nullptr;
}

int count_reports(Exported& e) {
  int n = 0;
  e.job.progress = [&n](std::uint64_t done, std::uint64_t total) {
    ++n;
    CHECK(done <= total);
  };
  e.run();
  e.job.progress = nullptr;
  return n;
}

std::string without_times(const ExportManifest& manifest) {
  nlohmann::json json = nlohmann::json::parse(manifest_text(manifest));
  for (const char* list : {"inputs", "outputs"}) {
    for (auto& record : json[list]) record.erase("mtime_ns");
  }
  json.erase("source");
  return json.dump();
}

TEST_CASE("an interrupted export goes on, wherever it stopped") {
  const auto two_shards_to_write = [] {
    auto e = std::make_unique<Exported>("demo");
    e->edit(kShard1, [](auto& p) { p.add("mtp.fc.weight", "I64", {1}, std::string(8, '\0')); });
    return e;
  };
  const auto whole = two_shards_to_write();
  const int n_reports = count_reports(*whole);
  CHECK(n_reports > 100);  // a tensor each, read and written
  const std::string expected = without_times(whole->files()->manifest());
  std::vector<int> stops = {n_reports};
  for (int n = 1; n < n_reports; n += n_reports / 10) stops.push_back(n);
  for (const int n : stops) {
    const auto e = two_shards_to_write();
    interrupt(*e, n);
    CHECK(is_unfinished_export(e->out));
    CHECK(holds(refusal([&] { e->files(); }), "is an unfinished export"));
    const int n_left = count_reports(*e);
    if (n == n_reports) {  // all is read and one shard is written
      CHECK(n_left < n_reports / 2);
      CHECK(e->summary.n_resumed >= 1);
    }
    CHECK(without_times(e->files()->manifest()) == expected);
    check_same(*e->input(), *e->output(), e->job.prompt.label_ids);
    for (const auto& entry : fs::directory_iterator(e->out)) {
      CHECK_FALSE(entry.path().filename().string().find("partial") != std::string::npos);
    }
  }
}

TEST_CASE("an export goes on only when nothing changed") {
  const auto refused_after = [](const std::function<void(Exported&)>& change) {
    Exported e("demo");
    interrupt(e, 5);
    change(e);
    const std::string why = e.refused();
    CHECK(holds(why, "holds another unfinished export"));
    e.job.start_over = true;
    CHECK_NOTHROW(e.run());
    CHECK_NOTHROW(e.output());
    return why;
  };
  CHECK(holds(refused_after([](auto& e) {
                e.edit(kShard1, [](auto& p) { p.header["__metadata__"]["x"] = "y"; });
              }),
              "input \"base/model-00001-of-00002.safetensors\" has changed"));
  CHECK(holds(refused_after([](auto& e) { fs::remove(e.from / "base/generation_config.json"); }),
              "input \"base/generation_config.json\" is gone"));
  CHECK(holds(refused_after([](auto& e) { write_all(e.from / "base/merges.txt", "a b"); }),
              "input \"base/merges.txt\" is new"));
  CHECK(holds(refused_after([](auto& e) { e.job.lora = LoraMode::kMerged; }),
              "its LoRA mode is unmerged"));
  CHECK(holds(refused_after([](auto& e) { e.job.exporter = "next"; }),
              "it was made by test, this is next"));
  CHECK(holds(refused_after([](auto& e) { e.job.prompt.label_ids[0] = 7; }),
              "its tokenizer or framing is another"));
}

TEST_CASE("an input that changes under the export") {
  Exported e("demo");
  int n = 0;
  e.job.progress = [&](std::uint64_t, std::uint64_t) {
    if (++n == 3) e.edit(kShard1, [](auto& p) { p.header["__metadata__"]["x"] = "y"; });
  };
  CHECK(holds(e.refused(), "changed while it was exported"));
  CHECK_FALSE(is_export(e.out));
}

TEST_CASE("what stands in the directory is not overwritten") {
  Exported e("tiny-a");
  fs::create_directory(e.out);
  write_all(e.out / "mine.txt", "mine");
  CHECK(e.refused(ErrorKind::kUsage) ==
        e.out.string() + " is not empty; --force writes there all the same");
  e.job.start_over = true;
  e.run();
  CHECK(read_all(e.out / "mine.txt") == "mine");
  e.job.start_over = false;
  e.run();
  CHECK(e.summary.already_done);
  e.job.lora = LoraMode::kMerged;
  CHECK(holds(e.refused(ErrorKind::kUsage),
              "holds an export already, and its LoRA mode is unmerged"));

  e.job.start_over = true;
  fs::create_symlink("elsewhere", e.out / kJournalFile);
  CHECK(holds(e.refused(ErrorKind::kUsage), "is no regular file, so it is not replaced"));
  CHECK(fs::is_symlink(e.out / kJournalFile));
  CHECK(is_export(e.out));

  ExportJob onto_itself = e.job;
  onto_itself.start_over = true;
  onto_itself.out = e.from / "base/../base";
  CHECK(holds(refusal([&] { export_checkpoint(onto_itself); }, ErrorKind::kUsage),
              "is an input, it cannot be the output too"));
  CHECK_NOTHROW(e.input());

  ExportJob again = e.job;
  again.base = e.out;
  again.out = e.scratch / "again";
  CHECK(refusal([&] { export_checkpoint(again); }, ErrorKind::kUsage) ==
        e.out.string() + " is an export itself; name what it was made from");
}

TEST_CASE("an altered export is refused, whichever file it is") {
  Exported e("demo");
  e.run();
  const std::vector<FileRecord> outputs = e.files()->manifest().outputs;
  for (const FileRecord& record : outputs) {
    const std::string content = read_all(e.out / record.name);
    std::string changed = content;
    changed.back() = static_cast<char>(changed.back() ^ 1);
    write_all(e.out / record.name, changed);
    CHECK(holds(refusal([&] { e.output(); }), "\"" + record.name + "\" differs"));
    write_all(e.out / record.name, content.substr(1));
    CHECK(holds(refusal([&] { e.output(); }), "\"" + record.name + "\" has"));
    fs::remove(e.out / record.name);
    CHECK(holds(refusal([&] { e.output(); }), "files are missing: \"" + record.name + "\""));
    write_all(e.out / record.name, content);
  }
  CHECK_NOTHROW(e.output());
}

TEST_CASE("a faulty checkpoint leaves nothing that looks like an export") {
  Exported e("tiny-a");
  e.edit(kSingle, [](auto& p) { p.remove("model.language_model.norm.weight"); });
  CHECK(holds(e.refused(), "1 tensors are missing: \"model.language_model.norm.weight\""));
  CHECK_FALSE(fs::exists(e.out));
  Exported labels("tiny-a");
  labels.job.prompt.label_ids[5] = 1472;
  CHECK(labels.refused() == "label token 1472 is outside the head's 1472 rows");
}

}  // namespace
}  // namespace jemm

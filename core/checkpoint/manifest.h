// jemm_export.json: what an exported directory holds, where it came from, and the hashes that prove
// it. Knows no weights and reads no other file.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/adapter_config.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/config.h"

namespace jemm {

inline constexpr const char* kManifestFile = "jemm_export.json";
/// Stands in an export that is not finished; removed once the manifest is written.
inline constexpr const char* kJournalFile = "jemm_export.partial.json";

/// A file as it was read or written.
struct FileRecord {
  std::string name;
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;  ///< modification time since 1970
  std::string sha256;         ///< 64 lower-case hexadecimal digits; empty while it is not known
};

/// What the checkpoint's tokenizer and template make of a prompt, for later comparison.
struct PromptFacts {
  std::array<std::int32_t, 32> label_ids{};  ///< of kLabels, in order
  std::string text_framing;                  ///< around the text "{prompt}"
  std::string image_framing;                 ///< the same with one image
  std::string template_sha256;
  std::string tokenizer_class;
  std::string tokenizer_pattern;
  std::uint64_t text_token_budget = 0;
  std::uint64_t image_token_budget = 0;

  bool operator==(const PromptFacts&) const = default;
};

/// What a manifest says of the adapter.
struct LoraFacts {
  LoraMode mode = LoraMode::kUnmerged;
  std::uint64_t n_pairs = 0;
  std::vector<std::int64_t> ranks;  ///< distinct, ascending: one, unless patterns set several
  std::vector<double> scales;       ///< likewise
};

LoraFacts lora_facts(const std::vector<AdapterTarget>& targets, LoraMode mode);

struct ExportManifest {
  std::string exporter;  ///< program and version
  std::string base;      ///< as named by the user
  std::string adapter;
  std::optional<std::uint32_t> synthetic_seed;  ///< weights from the formula
  std::string fingerprint;                      ///< Checkpoint::fingerprint of what is exported
  LoraFacts lora;
  PromptFacts prompt;
  DecisionConfig decision;
  std::vector<FileRecord> inputs;   ///< "base/config.json", "adapter/adapter_config.json", ...
  std::vector<FileRecord> outputs;  ///< names in the exported directory

  const FileRecord* find_output(std::string_view name) const;  ///< null when there is none
};

enum class ManifestState {
  kFinished,
  kPartial,  ///< the journal of an export under way: what is not done has no hash or is not listed
};

/// The text of a manifest; pins of base, adapter and reference (pins.h) are added.
std::string manifest_text(const ExportManifest& manifest,
                          ManifestState state = ManifestState::kFinished);
/// Throws Error(kInput) naming `file`, key and what is wrong, another format version included.
ExportManifest parse_manifest(std::string_view text, const std::string& file,
                              ManifestState state = ManifestState::kFinished);

/// Why the work recorded in `earlier` is not that of `now`: exporter, mode, seed, prompt facts, or
/// an input's size or time. Empty when nothing differs.
std::string difference(const ExportManifest& earlier, const ExportManifest& now);

}  // namespace jemm

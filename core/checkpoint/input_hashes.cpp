// Hashes from a manifest, or of files.
#include "checkpoint/input_hashes.h"

#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "base/blocks.h"
#include "base/sha256.h"
#include "checkpoint/base_weights.h"
#include "checkpoint/export_files.h"

namespace jemm {
namespace {

/// The file of that name, in the directory that its prefix says or in the first that has it.
std::optional<Blob> find_file(const CheckpointFiles& files, std::string_view name) {
  const auto open = [](const std::shared_ptr<const FileSource>& source,
                       std::string_view file) -> std::optional<Blob> {
    if (source == nullptr || !source->contains(file)) return std::nullopt;
    return source->open(file);
  };
  constexpr std::string_view kBase = "base/";
  constexpr std::string_view kAdapter = "adapter/";
  if (name.starts_with(kBase)) return open(files.base, name.substr(kBase.size()));
  if (name.starts_with(kAdapter)) return open(files.adapter, name.substr(kAdapter.size()));
  std::optional<Blob> file = open(files.adapter, name);
  return file ? file : open(files.base, name);
}

}  // namespace

FileHashes recorded_hashes(const ExportManifest& manifest) {
  FileHashes hashes;
  for (const std::string_view role : {"base/", "adapter/"}) {
    for (const FileRecord& record : manifest.inputs) {
      if (!record.name.starts_with(role)) continue;
      hashes[record.name] = record.sha256;
      hashes[record.name.substr(role.size())] = record.sha256;
    }
  }
  return hashes;
}

std::vector<std::string> input_names(const CheckpointFiles& files) {
  std::vector<std::string> names = weight_file_names(*files.base);
  for (const char* name :
       {"config.json", "generation_config.json", "tokenizer.json", "tokenizer.model",
        "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja",
        "preprocessor_config.json", "video_preprocessor_config.json", "adapter_config.json",
        "adapter_model.safetensors", "decision_config.json"}) {
    names.emplace_back(name);
  }
  return names;
}

FileHashes input_hashes(const CheckpointFiles& files, std::span<const std::string> names) {
  if (files.exported != nullptr) return recorded_hashes(files.exported->manifest());
  std::vector<std::string> hashes(names.size());
  in_threads(names.size(), std::thread::hardware_concurrency(), [&](std::size_t i) {
    if (const std::optional<Blob> file = find_file(files, names[i])) {
      hashes[i] = sha256_hex(file->bytes);
    }
  });
  FileHashes found;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!hashes[i].empty()) found[names[i]] = hashes[i];
  }
  return found;
}

}  // namespace jemm

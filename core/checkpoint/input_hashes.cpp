// Hashes from a manifest, or of files.
#include "checkpoint/input_hashes.h"

#include <thread>
#include <vector>

#include "base/blocks.h"
#include "base/sha256.h"
#include "checkpoint/export_files.h"

namespace jemm {

FileHashes recorded_hashes(const ExportManifest& manifest) {
  FileHashes hashes;
  for (const std::string_view role : {"base/", "adapter/"}) {
    for (const FileRecord& record : manifest.inputs) {
      if (record.name.starts_with(role)) hashes[record.name.substr(role.size())] = record.sha256;
    }
  }
  return hashes;
}

FileHashes input_hashes(const CheckpointFiles& files, std::span<const std::string> names) {
  if (files.exported != nullptr) return recorded_hashes(files.exported->manifest());
  std::vector<std::string> hashes(names.size());
  in_threads(names.size(), std::thread::hardware_concurrency(), [&](std::size_t i) {
    for (const auto& source : {files.adapter, files.base}) {
      if (source == nullptr || !source->contains(names[i])) continue;
      hashes[i] = sha256_hex(source->open(names[i]).bytes);
      return;
    }
  });
  FileHashes found;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!hashes[i].empty()) found[names[i]] = hashes[i];
  }
  return found;
}

}  // namespace jemm

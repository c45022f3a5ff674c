// How the hashes of a checkpoint's files become its fingerprint.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace jemm {

struct FileHash {
  std::string name;  ///< "base/config.json"
  std::string sha256;
};

/// Of the files in the order in which Checkpoint reads them: config.json, adapter_config.json,
/// decision_config.json, the base's weight files, the index when it decided, the adapter's weights.
std::string fingerprint_of(std::span<const FileHash> files);
/// Of weights from the formula: the small files alone.
std::string synthetic_fingerprint_of(std::uint32_t seed, std::span<const FileHash> files);
/// Of weights that hold their updates, made from what has the fingerprint `unmerged`.
std::string merged_fingerprint_of(const std::string& unmerged);

}  // namespace jemm

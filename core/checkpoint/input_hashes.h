// SHA-256 of the files that a model was made from, to compare with what a golden was made from.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"

namespace jemm {

/// File name -> SHA-256, as a golden's checkpoint_sha256 has them: the files of base and adapter
/// side by side, of a name in both the adapter's; or "base/NAME" and "adapter/NAME".
using FileHashes = std::map<std::string, std::string>;

/// What an export's manifest records of its inputs.
FileHashes recorded_hashes(const ExportManifest& manifest);

/// Every file of the directories that a golden's manifest names: what describes the model, its
/// weights and its adapter.
std::vector<std::string> input_names(const CheckpointFiles& files);

/// An export's recorded hashes, all of them; or those of `names` that the directories hold, hashed
/// now, several at a time. Throws Error(kIo).
FileHashes input_hashes(const CheckpointFiles& files, std::span<const std::string> names);

}  // namespace jemm

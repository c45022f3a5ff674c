// SHA-256 of the files that a model was made from, to compare with what a golden was made from.
#pragma once

#include <map>
#include <span>
#include <string>

#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"

namespace jemm {

/// File name -> SHA-256, as a golden's checkpoint_sha256 has them: the files of base and adapter
/// side by side, of a name in both the adapter's; or "base/NAME" and "adapter/NAME".
using FileHashes = std::map<std::string, std::string>;

/// What an export's manifest records of its inputs.
FileHashes recorded_hashes(const ExportManifest& manifest);

/// An export's recorded hashes, all of them; or those of `names` that the directories hold, hashed
/// now, several at a time. Throws Error(kIo).
FileHashes input_hashes(const CheckpointFiles& files, std::span<const std::string> names);

}  // namespace jemm

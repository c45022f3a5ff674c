// Makes the directory that --model loads: checked, self-describing, without Python. Knows no
// tokenizers: what they say of a checkpoint comes in as PromptFacts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"

namespace jemm {

/// Told how many of how many bytes are read and written; may throw to interrupt the export.
using ExportProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

struct ExportJob {
  std::filesystem::path base;
  std::filesystem::path adapter;
  std::optional<std::uint32_t> synthetic_seed;  ///< weights from the formula, not from files
  std::filesystem::path out;
  LoraMode lora = LoraMode::kUnmerged;
  std::string exporter;  ///< program and version
  PromptFacts prompt;
  bool start_over = false;  ///< in a directory that holds something else
  ExportProgress progress;
};

struct ExportSummary {
  std::uint64_t bytes_written = 0;
  std::size_t n_linked = 0;
  std::size_t n_copied = 0;
  std::size_t n_written = 0;
  std::size_t n_resumed = 0;  ///< files that an earlier run had finished
  bool already_done = false;  ///< the directory was this export before
};

/// Checks base and adapter as open_checkpoint does and that every value is finite, then makes the
/// export in `job.out`: files that need not change are linked, or copied where that fails; those
/// that hold the head, "mtp.*" or, when merging, updated layers are written anew without what is
/// not kept; the manifest comes last. Blocks of 64 MiB, at most 4 files at a time: memory stays
/// below 1 GB whatever the size. A second call goes on where one was interrupted. Throws
/// Error(kInput) for an unusable checkpoint, and for a directory that holds other files or the work
/// of an export whose inputs or options differ; Error(kIo).
ExportSummary export_checkpoint(const ExportJob& job);

/// Base and adapter directories in Hugging Face form with the formula's weights, the whole head
/// included, in `job.out`/base and `job.out`/adapter. `job.out` must not hold anything.
ExportSummary write_synthetic(const ExportJob& job);

}  // namespace jemm

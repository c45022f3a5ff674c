// What an export reads and what it makes, decided before anything is written.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "checkpoint/adapter_weights.h"
#include "checkpoint/base_weights.h"
#include "checkpoint/export.h"
#include "checkpoint/output_tensor.h"

namespace jemm {

/// The directories of an export, opened and checked.
struct ExportSource {
  explicit ExportSource(const ExportJob& job);
  ExportSource(const ExportSource&) = delete;
  ExportSource& operator=(const ExportSource&) = delete;

  std::shared_ptr<const FileSource> base_files;
  std::shared_ptr<const FileSource> adapter_files;
  ModelConfig config;
  DecisionConfig decision;
  TensorRegistry registry;  // of the input
  std::vector<AdapterTarget> targets;
  std::optional<BaseWeights> base;  // none for the formula
  std::optional<AdapterWeights> adapter;

  LoraPair pair(const AdapterTarget& target, const ExportJob& job) const;
};

struct PlannedInput {
  std::string name;  ///< "base/..." or "adapter/..."
  std::filesystem::path path;
  const SafetensorsFile* weights = nullptr;  ///< null for a small file
  bool decides = false;                      ///< part of the fingerprint
};

/// Exactly one of the three makes the file.
struct PlannedOutput {
  std::string name;
  std::optional<std::size_t> input;  ///< the same bytes as this input
  std::vector<OutputTensor> tensors;
  std::string text;

  std::uint64_t bytes_to_write() const;  ///< of tensors
};

struct ExportPlan {
  std::vector<PlannedInput> inputs;  ///< those that decide in the fingerprint's order
  std::vector<PlannedOutput> outputs;
};

/// `source` and `job` must outlive the plan.
ExportPlan plan_export(const ExportSource& source, const ExportJob& job);
/// The same for write_synthetic; names begin with "base/" and "adapter/".
ExportPlan plan_synthetic(const ExportSource& source, const ExportJob& job);

}  // namespace jemm

// One run of parity: a golden against an engine, another golden or answers, with or without noise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <thread>

#include "github.h"
#include "judge/gates.h"
#include "model.h"
#include "parity_files.h"
#include "progress.h"

namespace jemm::cli {

struct ParityOptions {
  std::string golden;
  std::string against;
  std::string answers;
  std::string noise;
  ModelOptions model;
  EngineOptions engine;
  std::string stages;
  std::string preset;
  std::string gates_file;
  std::optional<double> threshold;
  bool print_gates = false;
  bool bisect = false;
  std::uint64_t min_questions = 1;
  std::string report;
  bool force = false;
  bool redact = false;
  bool github = on_github_actions();
  bool self_test = false;
  ProgressMode progress = ProgressMode::kAuto;
};

/// The gates of --gates or --preset, those for FP32 on both sides or not when neither is named.
/// Throws as reading them does.
Gates choose_gates(const ParityOptions& options, bool both_fp32);

/// Judges, prints and writes everything; returns the exit status. `files`: null without --report.
/// Unusable inputs are reported and become a status; other errors pass through.
int run_parity(const ParityOptions& options, ReportFiles* files);

}  // namespace jemm::cli

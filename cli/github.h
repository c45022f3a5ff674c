// What GitHub Actions shows of a report.
#pragma once

#include "judge/report.h"

namespace jemm::cli {

/// Whether this is a step of GitHub Actions: GITHUB_ACTIONS is "true".
bool on_github_actions();

/// Annotations on standard error, and the step summary behind what the step's file
/// (GITHUB_STEP_SUMMARY) holds already, within GitHub's limit.
void publish_on_github(const Report& report);

}  // namespace jemm::cli

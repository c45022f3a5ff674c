// The plots of report.html.
#pragma once

#include <string>

#include "judge/report.h"

namespace jemm {

/// RMS ratio of every stage and layer with budget and noise; empty when no stage has one.
std::string stage_plot(const Report& report);
std::string length_plot(const Report& report);  ///< drift against prompt length
std::string margin_plot(const Report& report);  ///< drift against the reference's margin
/// Mean and largest drift by type, candidates, images: a figure each.
std::string breakdown_plots(const Report& report);
/// Both distributions of one answer, candidate by candidate.
std::string distribution_plot(const AnswerPoint& point);
/// A bar of the share of a budget, with a mark at the whole.
std::string share_bar(double share, std::string_view style);

}  // namespace jemm

// Drift sorted into bins: by margin, and by the properties that reports break it down by.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "judge/report.h"

namespace jemm {

/// Empty bands from 0 to 1, narrow where flips happen.
std::vector<MarginBand> margin_bands();
MarginBand& band_of(std::vector<MarginBand>& bands, double margin);

/// Bins by property, then by their order. Their number has a limit, whatever the answers.
using Bins = std::map<std::string, std::map<int, Breakdown::Bin>>;
void add_to_bins(Bins& bins, const AnswerPoint& point);
std::vector<Breakdown> breakdowns(const Bins& bins);

}  // namespace jemm

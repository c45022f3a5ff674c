// Bins of a drift's properties.
#include "judge/bins.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

namespace jemm {
namespace {

constexpr std::array<double, 8> kMarginEdges = {0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 1};
constexpr std::array<std::string_view, 3> kTypes = {"choice", "noul", "score"};
constexpr std::array<std::string_view, 5> kProperties = {"tokens", "type", "candidates", "images",
                                                         "margin"};

void add(std::map<int, Breakdown::Bin>& bins, int order, const std::string& label, double drift) {
  Breakdown::Bin& bin = bins[order];
  bin.label = label;
  bin.mean += drift;  // the sum, until breakdowns()
  bin.max = std::max(bin.max, drift);
  ++bin.n;
}

/// Powers of two: 64 to 127 is the bin of order 7.
void add_by_power(std::map<int, Breakdown::Bin>& bins, std::uint64_t value, double drift) {
  const auto order = static_cast<int>(std::bit_width(value));
  const std::uint64_t from = value == 0 ? 0 : std::uint64_t{1} << (order - 1);
  const std::string label = value == 0  ? "unknown"
                            : from == 1 ? "1"
                                        : fmt::format("{} to {}", from, 2 * from - 1);
  add(bins, order, label, drift);
}

}  // namespace

std::vector<MarginBand> margin_bands() {
  std::vector<MarginBand> bands;
  for (std::size_t i = 0; i + 1 < kMarginEdges.size(); ++i) {
    bands.push_back({.from = kMarginEdges[i], .to = kMarginEdges[i + 1]});
  }
  return bands;
}

MarginBand& band_of(std::vector<MarginBand>& bands, double margin) {
  for (MarginBand& band : bands) {
    if (margin < band.to) return band;
  }
  return bands.back();
}

void add_to_bins(Bins& bins, const AnswerPoint& point) {
  add_by_power(bins["tokens"], static_cast<std::uint64_t>(point.n_tokens), point.drift);
  const auto type = std::find(kTypes.begin(), kTypes.end(), point.type);
  add(bins["type"], static_cast<int>(type - kTypes.begin()),
      type == kTypes.end() ? "other" : point.type, point.drift);
  add_by_power(bins["candidates"], point.reference.size(), point.drift);
  const int n_images = static_cast<int>(std::min<std::int64_t>(point.n_images, 5));
  add(bins["images"], n_images, n_images == 5 ? "5 and more" : fmt::format("{}", n_images),
      point.drift);
  std::vector<MarginBand> bands = margin_bands();
  const MarginBand& band = band_of(bands, point.margin);
  add(bins["margin"], static_cast<int>(&band - bands.data()),
      fmt::format("{} to {}", band.from, band.to), point.drift);
}

std::vector<Breakdown> breakdowns(const Bins& bins) {
  std::vector<Breakdown> result;
  for (const std::string_view property : kProperties) {
    const auto found = bins.find(std::string(property));
    if (found == bins.end()) continue;
    Breakdown& breakdown = result.emplace_back();
    breakdown.property = property;
    for (const auto& [order, bin] : found->second) {
      breakdown.bins.push_back(bin);
      breakdown.bins.back().mean /= static_cast<double>(bin.n);
    }
  }
  return result;
}

}  // namespace jemm

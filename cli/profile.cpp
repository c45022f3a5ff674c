#include "profile.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/registry.h"
#include "tokens/json_walker.h"

namespace jemm::cli {
namespace {

/// Milliseconds. The bound leaves room for sums.
double number(const nlohmann::json& value) {
  const double x = value.get<double>();
  if (!(x >= 0 && x <= 1e12)) throw std::runtime_error(fmt::format("{} is no time", x));
  return x;
}

std::int64_t rows(const nlohmann::json& value) {
  constexpr std::int64_t kMostRows = std::int64_t{1} << 40;
  if (!value.is_number_integer()) throw std::runtime_error("rows must be whole");
  const auto n = value.get<std::int64_t>();
  if (n > kMostRows) throw std::runtime_error(fmt::format("{} rows are too many", n));
  return n;
}

CostProfile parse_profile(const nlohmann::json& json, const std::string& origin) {
  CostProfile profile{.origin = origin,
                      .points = {},
                      .segment_ms = number(json.at("segment_ms")),
                      .level_ms = number(json.at("level_ms"))};
  for (const nlohmann::json& point : json.at("points")) {
    const CostProfile::Point next{rows(point.at(0)), number(point.at(1))};
    const bool rises = profile.points.empty() ? next.n_rows > 0
                                              : next.n_rows > profile.points.back().n_rows &&
                                                    next.ms >= profile.points.back().ms;
    if (!rises) throw std::runtime_error("points must rise");
    profile.points.push_back(next);
  }
  if (profile.points.empty()) throw std::runtime_error("no points");
  return profile;
}

[[noreturn]] void refuse_profile(const std::string& path, std::string_view reason) {
  fail(ErrorKind::kInput,
       "--profile {}: {}; it takes what jemm plan --json writes, or its \"profile\": "
       "{{\"points\": [[rows, ms], ...], \"segment_ms\", \"level_ms\"}}",
       path, reason);
}

}  // namespace

CostProfile assumed_profile(const ModelConfig& config) {
  constexpr double kFlopsPerMs = 1e8;
  double n_weights = 0;
  const TensorRegistry registry(config);
  for (const TensorInfo& info : registry.tensors()) {
    if (info.takes_lora) n_weights += static_cast<double>(element_count(info.shape));
  }
  return linear_profile(2 * n_weights / kFlopsPerMs, "linear, 100 GFLOP/s assumed");
}

nlohmann::ordered_json profile_json(const CostProfile& profile) {
  nlohmann::ordered_json points = nlohmann::ordered_json::array();
  for (const CostProfile::Point& point : profile.points) points.push_back({point.n_rows, point.ms});
  return {{"origin", profile.origin},
          {"points", points},
          {"segment_ms", profile.segment_ms},
          {"level_ms", profile.level_ms}};
}

CostProfile read_profile(const std::string& path) {
  const Blob content = map_file(path);
  try {
    const nlohmann::json json = parse_small_json(content.text(), path);
    const bool is_plan = json.is_object() && json.contains("profile");
    return parse_profile(is_plan ? json["profile"] : json, path);
  } catch (const nlohmann::json::exception&) {
    refuse_profile(path, "a member is missing or of another type");
  } catch (const std::exception& error) {
    refuse_profile(path, error.what());
  }
}

}  // namespace jemm::cli

#include "checkpoint/adapter_config.h"

#include <cmath>

#include "base/error.h"
#include "checkpoint/json_object.h"

namespace jemm {
namespace {

constexpr IntRange kRanks{1, 1 << 16};

}  // namespace

AdapterConfig::AdapterConfig(std::string_view json, const std::string& file) {
  const nlohmann::json value = parse_json_object(json, file);
  const JsonObject root(value, file);
  if (root.string("peft_type", "") != "LORA") root.refuse("peft_type", "must be LORA");
  rank_ = root.integer("r", 8, kRanks);
  alpha_ = root.number("lora_alpha", 8);
  use_rslora_ = root.boolean("use_rslora", false);
}

std::int64_t AdapterConfig::rank(std::string_view) const { return rank_; }

double AdapterConfig::scale(std::string_view module) const {
  const auto divisor = static_cast<double>(rank(module));
  return alpha_ / (use_rslora_ ? std::sqrt(divisor) : divisor);
}

}  // namespace jemm

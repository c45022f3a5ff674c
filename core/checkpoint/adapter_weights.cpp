#include "checkpoint/adapter_weights.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/json_object.h"

namespace jemm {
namespace {

constexpr std::string_view kPrefix = "base_model.model.";
constexpr std::string_view kSuffixA = ".lora_A.weight";
constexpr std::string_view kSuffixB = ".lora_B.weight";

/// "base_model.model." + module + suffix -> module; empty when the name is of another form.
std::string_view middle(std::string_view name, std::string_view suffix) {
  if (!name.starts_with(kPrefix) || !name.ends_with(suffix) ||
      name.size() < kPrefix.size() + suffix.size()) {
    return {};
  }
  return name.substr(kPrefix.size(), name.size() - kPrefix.size() - suffix.size());
}

}  // namespace

AdapterWeights::AdapterWeights(const FileSource& adapter, const AdapterConfig& config,
                               const TensorRegistry& registry)
    : file_(adapter.open(kAdapterWeightsFile), adapter.name() + "/" + kAdapterWeightsFile) {
  place_all(registry);
  check_shapes(config, registry);
}

void AdapterWeights::place_all(const TensorRegistry& registry) {
  for (const TensorInfo& info : registry.tensors()) {
    if (info.takes_lora) pairs_.push_back({module_name(info), nullptr, nullptr, 0});
  }
  const auto by_module = [](const Pair& a, const Pair& b) { return a.module < b.module; };
  std::sort(pairs_.begin(), pairs_.end(), by_module);

  std::vector<std::string> unknown;
  for (const SafetensorsEntry& entry : file_.entries()) {
    const bool is_a = !middle(entry.name, kSuffixA).empty();
    const std::string_view module = middle(entry.name, is_a ? kSuffixA : kSuffixB);
    const auto at = std::lower_bound(pairs_.begin(), pairs_.end(), Pair{module, nullptr, nullptr, 0},
                                     by_module);
    if (module.empty() || at == pairs_.end() || at->module != module) {
      unknown.push_back(entry.name);
      continue;
    }
    (is_a ? at->a : at->b) = &entry;
  }
  if (!unknown.empty()) {
    fail(ErrorKind::kInput, "{}: {} tensors fit no layer that takes a pair: {}", file_.name(),
         unknown.size(), name_list(unknown));
  }
  std::erase_if(pairs_, [](const Pair& p) { return p.a == nullptr && p.b == nullptr; });
  if (pairs_.empty()) fail(ErrorKind::kInput, "{} holds no pair", file_.name());
}

void AdapterWeights::check_shapes(const AdapterConfig& config, const TensorRegistry& registry) {
  std::vector<std::string> halves;
  for (Pair& pair : pairs_) {
    if (pair.a == nullptr || pair.b == nullptr) {
      halves.push_back(std::string(pair.module) + (pair.a == nullptr ? ".lora_A" : ".lora_B"));
      continue;
    }
    const Shape& weight = registry.find(std::string(pair.module) + ".weight")->shape;
    const std::int64_t rank = config.rank(pair.module);
    const Shape want_a{rank, weight[1]};
    const Shape want_b{weight[0], rank};
    for (const auto& [entry, want] : {std::pair(pair.a, want_a), std::pair(pair.b, want_b)}) {
      if (entry->shape != want) {
        fail(ErrorKind::kInput, "{}: tensor {} has shape {}, but layer and rank ask for {}",
             file_.name(), entry->name, shape_text(entry->shape), shape_text(want));
      }
      file_.tensor(*entry);  // refuses types that weights are not kept in
    }
    pair.scale = config.scale(pair.module);
  }
  if (!halves.empty()) {
    fail(ErrorKind::kInput, "{}: {} halves of pairs are missing: {}", file_.name(), halves.size(),
         name_list(halves));
  }
}

std::optional<LoraPair> AdapterWeights::pair(std::string_view module) const {
  const auto at = std::lower_bound(pairs_.begin(), pairs_.end(), module,
                                   [](const Pair& p, std::string_view m) { return p.module < m; });
  if (at == pairs_.end() || at->module != module) return std::nullopt;
  return LoraPair{widened(file_.tensor(*at->a)), widened(file_.tensor(*at->b)), at->scale};
}

}  // namespace jemm

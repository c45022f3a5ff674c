// Fields of adapter_config.json to layers, ranks and scales.
#include "checkpoint/adapter_config.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "base/error.h"
#include "checkpoint/json_object.h"
#include "checkpoint/pattern.h"

namespace jemm {
namespace {

constexpr IntRange kRanks{1, 1 << 16};
constexpr std::size_t kMaxPatterns = 2000;
constexpr std::int64_t kMaxSteps = 1'000'000'000;  // of all pattern matching of one config

/// Fields that do not change what a trained adapter computes, whatever they hold.
constexpr std::string_view kHarmless[] = {
    "auto_mapping", "base_model_name_or_path", "inference_mode", "lora_dropout", "megatron_core",
    "peft_version", "qalora_group_size",       "revision"};
/// Fields that are read below.
constexpr std::string_view kRead[] = {
    "alpha_pattern", "bias",           "init_lora_weights", "lora_alpha", "peft_type", "r",
    "rank_pattern",  "target_modules", "task_type",         "use_rslora"};

template <std::size_t N>
bool is_in(const std::string_view (&list)[N], std::string_view key) {
  return std::find(std::begin(list), std::end(list), key) != std::end(list);
}

void check_fields(const JsonObject& root) {
  for (const auto& [key, value] : root.value().items()) {
    if (is_in(kHarmless, key) || is_in(kRead, key) || is_blank(value)) continue;
    root.refuse(key, fmt::format("is not supported, found {}", json_text(value)));
  }
  const auto one_of = [&root](std::string_view key, const nlohmann::json& allowed) {
    const nlohmann::json* found = root.find(key);
    if (found != nullptr && std::find(allowed.begin(), allowed.end(), *found) == allowed.end()) {
      root.refuse(key, fmt::format("{} is not supported", json_text(*found)));
    }
  };
  root.require("peft_type");
  one_of("peft_type", {"LORA"});
  one_of("task_type", {nullptr, "CAUSAL_LM"});
  one_of("bias", {"none"});
  // The other ways (PiSSA, LoftQ, OLoRA, ...) change the base weights when the adapter is loaded.
  one_of("init_lora_weights", {true, false, "gaussian"});
}

/// Keys of the object under `field` in the file's order, which nlohmann's objects do not keep.
std::vector<std::string> keys_in_order(std::string_view json, std::string_view field) {
  std::vector<std::string> keys;
  bool inside = false;
  const auto listen = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    if (event == nlohmann::json::parse_event_t::key) {
      if (depth == 1) inside = value == field;
      if (depth == 2 && inside) keys.push_back(value.get<std::string>());
    }
    return true;
  };
  [[maybe_unused]] const nlohmann::json again = nlohmann::json::parse(json, listen);
  return keys;
}

/// rank_pattern or alpha_pattern: the first key that matches a module's end decides.
class Overrides {
 public:
  Overrides(const JsonObject& root, std::string_view json, std::string_view field)
      : object_(root.object(field)), keys_(keys_in_order(json, field)) {
    if (keys_.size() > kMaxPatterns) root.refuse(field, "holds too many patterns");
  }

  /// Calls set(i, values, key) for each of the modules that a key matches.
  void apply(
      const std::vector<AdapterTarget>& targets, std::int64_t& steps,
      const std::function<void(std::size_t, const JsonObject&, const std::string&)>& set) const {
    std::vector<bool> decided(targets.size());
    for (const std::string& key : keys_) {
      // PEFT: re.match(rf"(.*\.)?({key})$", module); the last part makes a full match of it.
      const Pattern pattern("(?:(.*\\.)?(" + key + ")$).*", object_.where());
      for (std::size_t i = 0; i < targets.size(); ++i) {
        if (decided[i] || !pattern.full_match(targets[i].module(), steps)) continue;
        decided[i] = true;
        set(i, object_, key);
      }
    }
  }

 private:
  JsonObject object_;
  std::vector<std::string> keys_;
};

/// Decides whether target_modules selects a module: a pattern for the whole name, or a list of
/// names of which one is the module's or its last parts.
class Selector {
 public:
  explicit Selector(const JsonObject& root) {
    const nlohmann::json* field = root.find_not_null("target_modules");
    if (field == nullptr) root.refuse("target_modules", "is missing");
    if (field->is_string()) {
      if (*field == "all-linear") root.refuse("target_modules", "\"all-linear\" is not supported");
      pattern_.emplace(field->get_ref<const std::string&>(), root.where());
      return;
    }
    if (!field->is_array()) root.refuse("target_modules", "must be a string or an array");
    for (const nlohmann::json& name : *field) {
      if (!name.is_string()) root.refuse("target_modules", "may not hold " + json_text(name));
      names_.push_back(name.get<std::string>());
    }
    std::sort(names_.begin(), names_.end());
  }

  bool selects(std::string_view module, std::int64_t& steps) const {
    if (pattern_) return pattern_->full_match(module, steps);
    const auto listed = [this](std::string_view name) {
      return std::binary_search(names_.begin(), names_.end(), name);
    };
    if (listed(module)) return true;
    for (auto dot = module.find('.'); dot != std::string_view::npos;
         dot = module.find('.', dot + 1)) {
      if (listed(module.substr(dot + 1))) return true;
    }
    return false;
  }

 private:
  std::optional<Pattern> pattern_;
  std::vector<std::string> names_;  // sorted
};

/// Every module that holds a tensor, directly or below.
std::vector<std::string_view> all_modules(const TensorRegistry& registry) {
  std::vector<std::string_view> modules;
  for (const TensorInfo& info : registry.tensors()) {
    const std::string_view name = info.name;
    for (auto dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
      modules.push_back(name.substr(0, dot));
    }
  }
  std::sort(modules.begin(), modules.end());
  modules.erase(std::unique(modules.begin(), modules.end()), modules.end());
  return modules;
}

std::vector<AdapterTarget> selected(const JsonObject& root, const TensorRegistry& registry,
                                    std::int64_t& steps) {
  const Selector selector(root);
  std::vector<AdapterTarget> targets;
  std::vector<std::string> refused;
  for (const std::string_view module : all_modules(registry)) {
    if (!selector.selects(module, steps)) continue;
    const TensorInfo* weight = registry.find(std::string(module) + ".weight");
    if (weight != nullptr && weight->takes_lora) {
      targets.push_back({weight, 0, 0});
    } else {
      refused.emplace_back(module);
    }
  }
  if (!refused.empty()) {
    root.refuse("target_modules",
                "selects modules where pairs are not supported: " + name_list(refused));
  }
  if (targets.empty()) root.refuse("target_modules", "selects no layer of the model");
  return targets;
}

}  // namespace

std::vector<AdapterTarget> parse_adapter_config(std::string_view json, const std::string& file,
                                                const TensorRegistry& registry) {
  const nlohmann::json value = parse_json_object(json, file);
  const JsonObject root(value, file);
  check_fields(root);
  std::int64_t steps = kMaxSteps;
  std::vector<AdapterTarget> targets = selected(root, registry, steps);

  const std::int64_t rank = root.integer("r", 8, kRanks);
  for (AdapterTarget& target : targets) target.rank = rank;
  Overrides(root, json, "rank_pattern")
      .apply(targets, steps, [&](std::size_t i, const JsonObject& ranks, const std::string& key) {
        targets[i].rank = ranks.integer(key, rank, kRanks);
      });

  const double alpha = root.positive_number("lora_alpha", 8);
  std::vector<double> alphas(targets.size(), alpha);
  Overrides(root, json, "alpha_pattern")
      .apply(targets, steps, [&](std::size_t i, const JsonObject& values, const std::string& key) {
        alphas[i] = values.positive_number(key, alpha);
      });
  const bool use_rslora = root.boolean("use_rslora", false);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const auto divisor = static_cast<double>(targets[i].rank);
    targets[i].scale = alphas[i] / (use_rslora ? std::sqrt(divisor) : divisor);
  }
  return targets;
}

const AdapterTarget* find_target(const std::vector<AdapterTarget>& targets,
                                 std::string_view module) {
  const auto at = std::lower_bound(
      targets.begin(), targets.end(), module,
      [](const AdapterTarget& target, std::string_view name) { return target.module() < name; });
  return at != targets.end() && at->module() == module ? &*at : nullptr;
}

}  // namespace jemm

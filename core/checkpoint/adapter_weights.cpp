// Checks the names, types and shapes of the pairs.
#include "checkpoint/adapter_weights.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/json_object.h"

namespace jemm {
namespace {

constexpr std::string_view kTextOnlyPrefix = "base_model.model.model.layers.";

/// "base_model.model." + module + suffix -> module; empty when the name is of another form.
std::string_view middle(std::string_view name, std::string_view suffix) {
  if (!name.starts_with(kAdapterPrefix) || !name.ends_with(suffix) ||
      name.size() < kAdapterPrefix.size() + suffix.size()) {
    return {};
  }
  return name.substr(kAdapterPrefix.size(), name.size() - kAdapterPrefix.size() - suffix.size());
}

}  // namespace

AdapterWeights::AdapterWeights(SafetensorsFile file, const std::vector<AdapterTarget>& targets)
    : file_(std::move(file)), targets_(targets), entries_(targets.size()) {
  place_all();
  check_all();
}

void AdapterWeights::place_all() {
  std::vector<std::string> surplus;
  bool text_only = false;
  for (const SafetensorsEntry& entry : file_.entries()) {
    const bool is_a = entry.name.ends_with(kLoraA);
    const AdapterTarget* target = find_target(targets_, middle(entry.name, is_a ? kLoraA : kLoraB));
    if (target == nullptr) {
      surplus.push_back(entry.name);
      text_only = text_only || entry.name.starts_with(kTextOnlyPrefix);
      continue;
    }
    Entries& entries = entries_[static_cast<std::size_t>(target - targets_.data())];
    (is_a ? entries.a : entries.b) = &entry;
  }
  if (surplus.empty()) return;
  fail(ErrorKind::kInput,
       "{}: {} tensors belong to no layer that the adapter's config selects{}: {}", file_.name(),
       surplus.size(),
       text_only ? " (the adapter was saved for the text-only model, whose layers have other names)"
                 : "",
       name_list(surplus));
}

void AdapterWeights::check_all() const {
  std::vector<std::string> missing;
  const auto check = [&](const AdapterTarget& target, const SafetensorsEntry* entry,
                         std::string_view suffix, const Shape& shape) {
    if (entry == nullptr) {
      missing.push_back(fmt::format("{}{}{}", kAdapterPrefix, target.module(), suffix));
    } else if (entry->shape != shape) {
      fail(ErrorKind::kInput, "{}: tensor {} has shape {}, but its layer and rank ask for {}",
           file_.name(), entry->name, shape_text(entry->shape), shape_text(shape));
    } else {
      file_.weight_type(*entry);
    }
  };
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const AdapterTarget& target = targets_[i];
    check(target, entries_[i].a, kLoraA, target.a_shape());
    check(target, entries_[i].b, kLoraB, target.b_shape());
  }
  if (!missing.empty()) {
    fail(ErrorKind::kInput, "{}: {} of {} tensors are missing: {}", file_.name(), missing.size(),
         2 * targets_.size(), name_list(missing));
  }
}

LoraPair AdapterWeights::pair(const AdapterTarget& target) const {
  const Entries& entries = entries_[static_cast<std::size_t>(&target - targets_.data())];
  return {widened(file_.tensor(*entries.a)), widened(file_.tensor(*entries.b)), target.scale};
}

}  // namespace jemm

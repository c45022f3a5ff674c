#include "bench_modes.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "validators.h"

namespace jemm::cli {
namespace {

/// A whole number from 1 to `highest`, or 0.
std::size_t positive(const std::string& text, std::size_t highest) {
  std::size_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, status] = std::from_chars(text.data(), end, value);
  return status == std::errc() && at == end && value <= highest ? value : 0;
}

bool set_model(Mode& mode, const std::string& value) {
  mode.model.model = value;
  return !value.empty();
}

bool set_device(Mode& mode, const std::string& value) {
  mode.engine.device = value;
  std::string text = value;
  return device_validator()(text).empty();
}

bool set_precision(Mode& mode, const std::string& value) {
  mode.engine.precision = value;
  return value == "bf16" || value == "fp32";
}

bool set_deterministic(Mode& mode, const std::string& value) {
  mode.engine.deterministic = value == "on";
  return value == "on" || value == "off";
}

bool set_graphs(Mode& mode, const std::string& value) {
  mode.engine.graphs = value == "on";
  return value == "on" || value == "off";
}

bool set_threads(Mode& mode, const std::string& value) {
  mode.engine.n_threads = static_cast<int>(positive(value, kMostThreads));
  return mode.engine.n_threads > 0;
}

bool set_batch_tokens(Mode& mode, const std::string& value) {
  mode.passes.batch_tokens = positive(value, kMostBatchTokens);
  return mode.passes.batch_tokens > 0;
}

bool set_reuse(Mode& mode, const std::string& value) {
  for (const PrefixReuse reuse : {PrefixReuse::kOff, PrefixReuse::kRequest, PrefixReuse::kFile}) {
    mode.passes.mode = reuse;
    if (prefix_reuse_name(reuse) == value) return true;
  }
  return false;
}

struct Key {
  std::string_view name;
  bool (*set)(Mode& mode, const std::string& value);  ///< false: no such value
};
constexpr Key kKeys[] = {
    {"model", set_model},
    {"device", set_device},
    {"precision", set_precision},
    {"deterministic", set_deterministic},
    {"graphs", set_graphs},
    {"threads", set_threads},
    {"batch-tokens", set_batch_tokens},
    {"reuse", set_reuse},
};

}  // namespace

std::string mode_keys() {
  std::string text;
  for (const Key& key : kKeys) {
    text += text.empty() ? "" : ", ";
    text += key.name;
  }
  return text;
}

std::vector<Mode> make_modes(const Mode& base, const std::string& compare) {
  if (compare.empty()) return {base};
  const std::size_t equals = compare.find('=');
  const std::string name = compared_key(compare);
  const auto key = std::find_if(std::begin(kKeys), std::end(kKeys),
                                [&](const Key& known) { return known.name == name; });
  if (key == std::end(kKeys) || equals == std::string::npos) {
    fail(ErrorKind::kUsage, "--compare takes KEY=A,B with one of the keys {}, not {}", mode_keys(),
         compare);
  }
  std::vector<Mode> modes;
  for (const std::string& value : CLI::detail::split(compare.substr(equals + 1), ',')) {
    Mode mode = base;
    mode.name = fmt::format("{}={}", name, value);
    if (!key->set(mode, value)) {
      fail(ErrorKind::kUsage, "--compare {}: \"{}\" is no {}", compare, value, name);
    }
    if (std::any_of(modes.begin(), modes.end(),
                    [&](const Mode& other) { return other.name == mode.name; })) {
      fail(ErrorKind::kUsage, "--compare {}: {} comes twice", compare, value);
    }
    modes.push_back(std::move(mode));
  }
  if (modes.size() < 2) fail(ErrorKind::kUsage, "--compare {} has one value alone", compare);
  return modes;
}

std::string mode_setup(const Mode& mode) {
  const EngineChoice choice = choose_engine(mode.engine);
  std::string text = fmt::format("{}, {}", choice.device, choice.dtype);
  if (choice.device == "cpu") {
    text += fmt::format(", {} threads", mode.engine.n_threads);
  } else {
    if (mode.engine.deterministic) text += ", deterministic";
    if (!mode.engine.graphs) text += ", no graphs";
  }
  text += fmt::format(", passes of {} rows", mode.passes.batch_tokens);
  if (mode.passes.mode != PrefixReuse::kOff) {
    text += fmt::format(", reuse {}", prefix_reuse_name(mode.passes.mode));
  }
  return text;
}

std::optional<int> cuda_device(const Mode& mode) {
  const std::string device = choose_engine(mode.engine).device;
  if (device == "cpu") return std::nullopt;
  return std::stoi(device.substr(std::string("cuda:").size()));
}

bool share_engine(const Mode& a, const Mode& b) {
  const auto parts = [](const Mode& mode) {
    return std::tie(mode.model.model, mode.engine.device, mode.engine.precision,
                    mode.engine.deterministic, mode.engine.graphs, mode.engine.n_threads);
  };
  return parts(a) == parts(b);
}

void check_modes_differ(const std::vector<Mode>& modes, const std::vector<std::string>& weights) {
  std::map<std::pair<std::string, std::string>, std::string> names;
  for (std::size_t i = 0; i < modes.size(); ++i) {
    const std::string setup = mode_setup(modes[i]);
    const auto [at, is_new] = names.try_emplace({weights[i], setup}, modes[i].name);
    if (!is_new) {
      fail(ErrorKind::kUsage, "--compare: {} and {} are the same here ({}, with equal weights)",
           at->second, modes[i].name, setup);
    }
  }
}

std::string compared_key(const std::string& compare) {
  return compare.substr(0, compare.find('='));
}

}  // namespace jemm::cli

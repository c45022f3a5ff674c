// parse_model_spec: the command line's name of a model.
#include <charconv>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/json_object.h"

namespace jemm {
namespace {

constexpr std::string_view kSynthetic = "synthetic:";
constexpr std::string_view kSeed = ",seed=";

/// Takes ",seed=N" off the end of `text`.
std::uint32_t take_seed(std::string_view& text) {
  std::uint32_t seed = 1;
  const auto at = text.rfind(kSeed);
  if (at == std::string_view::npos) return seed;
  const std::string_view digits = text.substr(at + kSeed.size());
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seed);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    fail(ErrorKind::kUsage, "seed {} is no number from 0 to 4294967295", in_quotes(digits));
  }
  text = text.substr(0, at);
  return seed;
}

}  // namespace

ModelSpec parse_model_spec(std::string_view text) {
  ModelSpec spec;
  std::string_view paths = text;
  if (paths.starts_with(kSynthetic)) {
    paths.remove_prefix(kSynthetic.size());
    spec.synthetic_seed = take_seed(paths);
  }
  std::string* part = &spec.base;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (paths[i] != '+') {
      *part += paths[i];
    } else if (i + 1 < paths.size() && paths[i + 1] == '+') {
      *part += paths[i++];
    } else if (part == &spec.base) {
      part = &spec.adapter;
    } else {
      fail(ErrorKind::kUsage, "model {}: write BASE+ADAPTER, and a + inside a path as ++",
           in_quotes(text));
    }
  }
  if (spec.base.empty()) fail(ErrorKind::kUsage, "model {} names no base", in_quotes(text));
  if (part == &spec.adapter && spec.adapter.empty()) {
    fail(ErrorKind::kUsage, "model {} names no adapter behind the +", in_quotes(text));
  }
  return spec;
}

}  // namespace jemm

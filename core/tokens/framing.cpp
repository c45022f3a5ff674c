// The framing as text, known templates by their hash, the labels' ids.
#include "tokens/framing.h"

#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/labels.h"
#include "base/sha256.h"
#include "tokens/json_walker.h"

namespace jemm {
namespace {

constexpr std::string_view kTemplateFile = "chat_template.jinja";
constexpr std::string_view kConfigFile = "tokenizer_config.json";

// SHA-256 of the templates that are known to render frame_prompt.
constexpr std::string_view kKnownTemplates[] = {
    "c3cf9e34abf4f9e36c2d72165aa9c132d3e2a725b6c2586aaa3a8af9d7a81041",  // Qwen3.8-27B
    "d0b53aec0f6a86e61d38570ede5eb03b7c82bd87efa5586374f25bb5e2f9becc",  // the small checkpoints
};

// The template and the name of its file; the Jinja file wins over the configuration, as in the
// reference.
std::pair<std::string, std::string> find_template(const FileSource& files) {
  if (files.contains(kTemplateFile)) {
    return {std::string(files.open(kTemplateFile).text()), files.path(kTemplateFile)};
  }
  if (files.contains(kConfigFile)) {
    const Blob blob = files.open(kConfigFile);
    const nlohmann::json config = parse_small_json(blob.text(), files.path(kConfigFile));
    if (config.is_object() && config.contains("chat_template") &&
        config["chat_template"].is_string()) {
      return {config["chat_template"].get<std::string>(), files.path(kConfigFile)};
    }
  }
  fail(ErrorKind::kInput, "{}: no chat template", files.name());
}

}  // namespace

std::string frame_prompt(std::string_view prompt, std::span<const std::size_t> pads) {
  std::string text =
      "<|im_start|>system\n"
      "Choose the best available candidate for the question using only the supplied state. "
      "Return exactly one candidate label.<|im_end|>\n"
      "<|im_start|>user\n";
  for (const std::size_t n_pads : pads) {
    text += "<|vision_start|>";
    for (std::size_t i = 0; i < n_pads; ++i) text += kImagePad;
    text += "<|vision_end|>";
  }
  text += prompt;
  text += "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
  return text;
}

bool is_known_template(std::string_view sha256) {
  return std::find(std::begin(kKnownTemplates), std::end(kKnownTemplates), sha256) !=
         std::end(kKnownTemplates);
}

std::string check_chat_template(const FileSource& files, bool accept_unknown) {
  const auto [text, name] = find_template(files);
  const std::string hash = sha256_hex(text);
  if (!is_known_template(hash) && !accept_unknown) {
    fail(ErrorKind::kInput,
         "{}: unknown chat template, SHA-256 {}; accept it only when it renders "
         "the same framing",
         name, hash);
  }
  return hash;
}

std::array<std::int32_t, 32> label_token_ids(const Tokenizer& tokenizer) {
  const std::string& file = tokenizer.description().file;
  std::array<std::int32_t, kLabels.size()> labels{};
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    ids.clear();
    tokenizer.encode(kLabels.substr(i, 1), ids);
    if (ids.size() != 1) {
      fail(ErrorKind::kInput, "{}: label {} is {} tokens, not one", file, kLabels[i], ids.size());
    }
    const auto end = labels.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(labels.begin(), end, ids[0]) != end) {
      fail(ErrorKind::kInput, "{}: label {} shares token {} with another label", file, kLabels[i],
           ids[0]);
    }
    labels[i] = ids[0];
  }
  return labels;
}

}  // namespace jemm

// Reads classes, settings and added tokens of the configuration.
#include "tokens/tokenizer_rules.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tokens/json_walker.h"

namespace jemm {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kConfig = "tokenizer_config.json";

// A JSON object in a file; an empty one when the file is absent.
Json read_object(const FileSource& files, std::string_view file) {
  if (!files.contains(file)) return Json::object();
  const Blob blob = files.open(file);
  Json document = parse_small_json(blob.text(), files.path(file));
  if (!document.is_object()) fail(ErrorKind::kInput, "{}: not an object", files.path(file));
  return document;
}

std::string string_or_empty(const Json& object, const char* key, const std::string& name) {
  const Json value = object.value(key, Json());
  if (value.is_null()) return {};
  if (!value.is_string()) fail(ErrorKind::kInput, "{}: {} is not a string", name, key);
  return value.get<std::string>();
}

enum class RuleSource { kQwen2Class, kQwen3_5Class, kFile };

RuleSource source_of_class(const std::string& tokenizer_class, const std::string& model_type,
                           const std::string& name) {
  if (tokenizer_class == "Qwen2Tokenizer" || tokenizer_class == "Qwen2TokenizerFast") {
    return RuleSource::kQwen2Class;
  }
  if (tokenizer_class == "Qwen3_5Tokenizer" || tokenizer_class == "Qwen3_5TokenizerFast" ||
      (tokenizer_class.empty() && model_type == "qwen3_5")) {
    return RuleSource::kQwen3_5Class;
  }
  if (tokenizer_class == "PreTrainedTokenizerFast" || tokenizer_class == "TokenizersBackend") {
    return RuleSource::kFile;
  }
  if (tokenizer_class.empty()) {
    fail(ErrorKind::kInput, "{}: no tokenizer_class, and model_type {} gives none", name,
         model_type);
  }
  fail(ErrorKind::kInput, "{}: tokenizer_class {} is not built", name, tokenizer_class);
}

// Settings of tokenizer_config.json that would change ids and are not built.
void refuse_settings(const FileSource& files, const Json& config) {
  for (const char* key : {"add_prefix_space", "split_special_tokens"}) {
    const Json value = config.value(key, Json());
    if (!value.is_null() && value != false) {
      fail(ErrorKind::kInput, "{}: {}: {} is not built", files.path(kConfig), key, value.dump());
    }
  }
  if (config.contains("fast_tokenizer_files")) {
    fail(ErrorKind::kInput, "{}: fast_tokenizer_files is not built", files.path(kConfig));
  }
  if (!config.contains("added_tokens_decoder") && files.contains("added_tokens.json")) {
    fail(ErrorKind::kInput, "{} is not built", files.path("added_tokens.json"));
  }
}

// added_tokens_decoder in order of id; empty when there is none.
std::vector<AddedToken> decoder_tokens(const Json& config, const std::string& name) {
  std::vector<AddedToken> tokens;
  const Json decoder = config.value("added_tokens_decoder", Json::object());
  if (!decoder.is_object())
    fail(ErrorKind::kInput, "{}: added_tokens_decoder is not an object", name);
  for (const auto& [key, entry] : decoder.items()) {
    const std::string where = fmt::format("{}: added_tokens_decoder[{}]", name, key);
    AddedToken token = read_added_token(entry, where);
    const char* end = key.data() + key.size();
    const auto parsed = std::from_chars(key.data(), end, token.id);
    if (key.empty() || parsed.ec != std::errc() || parsed.ptr != end || token.id < 0) {
      fail(ErrorKind::kInput, "{}: the key is no id", where);
    }
    tokens.push_back(std::move(token));
  }
  std::sort(tokens.begin(), tokens.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  return tokens;
}

// The text of a special token, given as a string or as an object with a content.
std::optional<std::string> special_content(const Json& value, const std::string& where) {
  if (value.is_null()) return std::nullopt;
  if (value.is_string()) return value.get<std::string>();
  return read_added_token(value, where).content;
}

// Keys of tokenizer_config.json in the file's order, which nlohmann's object does not keep.
std::vector<std::string> config_keys(const FileSource& files) {
  std::vector<std::string> keys;
  if (!files.contains(kConfig)) return keys;
  const Blob blob = files.open(kConfig);
  JsonWalker walker(blob.text(), files.path(kConfig));
  walker.object([&](std::string_view key) {
    keys.emplace_back(key);
    walker.raw();
  });
  return keys;
}

// Tokens in the order of adding, each content once.
class TokenList {
 public:
  void add(AddedToken token) {
    if (seen_.insert(token.content).second) tokens_.push_back(std::move(token));
  }
  bool contains(const std::string& content) const { return seen_.contains(content); }
  std::vector<AddedToken> take() { return std::move(tokens_); }

 private:
  std::vector<AddedToken> tokens_;
  std::set<std::string, std::less<>> seen_;
};

// Adds the special tokens that the config names, in the reference's order: the seven standard
// ones, those with a name of their own, the unnamed. `with_defaults`: the Qwen classes set three.
void add_special_tokens(const FileSource& files, const Json& config, bool with_defaults,
                        TokenList& tokens) {
  constexpr std::string_view kNamed[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                         "pad_token", "cls_token", "mask_token"};
  const std::string name = files.path(kConfig);
  const auto add = [&](const Json& value, std::string_view key) {
    auto content = special_content(value, fmt::format("{}: {}", name, key));
    if (content) tokens.add({std::move(*content), -1});
  };
  for (const std::string_view key : kNamed) {
    const bool has_default =
        with_defaults && (key == "eos_token" || key == "unk_token" || key == "pad_token");
    add(config.value(key, has_default ? Json("<|endoftext|>") : Json()), key);
  }
  for (const std::string& key : config_keys(files)) {
    if (std::find(std::begin(kNamed), std::end(kNamed), key) != std::end(kNamed)) continue;
    if (key.ends_with("_token") && config[key].is_string()) add(config[key], key);
  }
  const char* extra = config.contains("extra_special_tokens") ? "extra_special_tokens"
                                                              : "additional_special_tokens";
  const Json unnamed = config.value(extra, Json());
  if (!unnamed.is_null() && !unnamed.is_array() && !unnamed.is_object()) {
    fail(ErrorKind::kInput, "{}: {} is neither a list nor an object", name, extra);
  }
  for (const Json& value : unnamed) {
    if (unnamed.is_object() && !(value.is_string() && tokens.contains(value.get<std::string>()))) {
      fail(ErrorKind::kInput, "{}: {}: a new token in an object is not built", name, extra);
    }
    add(value, extra);
  }
}

// Gives each token the id that the reference gives it: the vocabulary's own, else the next free
// one. A declared id that differs is an error: the reference would not follow it.
void assign_ids(std::vector<AddedToken>& tokens, const TokenizerFile& file,
                const std::string& name) {
  std::int64_t highest = -1;
  const auto n_vocabulary = static_cast<std::int64_t>(file.n_vocabulary);
  for (AddedToken& token : tokens) {
    std::int64_t id = file.spelled_id(token.content);
    if (id < 0) id = std::max(n_vocabulary, highest + 1);
    if (id > 0x7FFFFFFF) fail(ErrorKind::kInput, "{}: too many tokens", name);
    if (token.id >= 0 && token.id != id) {
      fail(ErrorKind::kInput, "{}: added token {} is declared as {}, but would become {}", name,
           token.content, token.id, id);
    }
    token.id = static_cast<std::int32_t>(id);
    highest = std::max(highest, id);
  }
}

// All added tokens in the order in which the reference adds them.
std::vector<AddedToken> all_added_tokens(const FileSource& files, Json config,
                                         const TokenizerFile& file, bool from_class) {
  const bool has_decoder = config.contains("added_tokens_decoder");
  std::vector<AddedToken> declared = file.added;
  if (from_class) {
    std::sort(declared.begin(), declared.end(),
              [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  }
  TokenList tokens;
  if (!from_class || !has_decoder) {
    for (AddedToken& token : declared) tokens.add(std::move(token));
  }
  for (AddedToken& token : decoder_tokens(config, files.path(kConfig))) {
    tokens.add(std::move(token));
  }
  if (!has_decoder) config.update(read_object(files, "special_tokens_map.json"));
  add_special_tokens(files, config, from_class, tokens);
  return tokens.take();
}

}  // namespace

std::string configured_class(const FileSource& files) {
  const std::string named =
      string_or_empty(read_object(files, kConfig), "tokenizer_class", files.path(kConfig));
  if (!named.empty()) return named;
  return string_or_empty(read_object(files, "config.json"), "tokenizer_class",
                         files.path("config.json"));
}

TokenizerRules choose_rules(const FileSource& files, const TokenizerFile& file,
                            const TokenizerOptions& options) {
  TokenizerRules rules;
  const Json config = read_object(files, kConfig);
  refuse_settings(files, config);
  rules.tokenizer_class = configured_class(files);

  RuleSource source = RuleSource::kFile;
  if (options.pattern == "qwen2") {
    source = RuleSource::kQwen2Class;
  } else if (options.pattern == "qwen3_5") {
    source = RuleSource::kQwen3_5Class;
  } else if (options.pattern.empty()) {
    const std::string model_type =
        string_or_empty(read_object(files, "config.json"), "model_type", files.path("config.json"));
    source = source_of_class(rules.tokenizer_class, model_type, files.path(kConfig));
  } else if (options.pattern != "file") {
    fail(ErrorKind::kUsage, "unknown split pattern {}: qwen2, qwen3_5 or file", options.pattern);
  }
  if (source == RuleSource::kFile) {
    if (!file.rules.pattern) {
      fail(ErrorKind::kInput, "{}: pre_tokenizer: {}", files.path("tokenizer.json"),
           file.rules.problem);
    }
    rules.pattern = *file.rules.pattern;
    rules.nfc = file.rules.nfc;
  } else if (source == RuleSource::kQwen2Class) {
    rules.pattern = SplitPattern::kQwen2;
  }
  rules.added = all_added_tokens(files, config, file, source != RuleSource::kFile);
  assign_ids(rules.added, file, files.path(kConfig));
  return rules;
}

std::vector<AddedToken> configured_added_tokens(const FileSource& files) {
  return decoder_tokens(read_object(files, kConfig), files.path(kConfig));
}

}  // namespace jemm

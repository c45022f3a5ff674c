// The sections of tokenizer.json, each checked.
#include "tokens/tokenizer_json.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tokens/byte_alphabet.h"
#include "tokens/json_walker.h"
#include "tokens/splitter.h"

namespace jemm {
namespace {

using Json = nlohmann::json;
using Members = std::map<std::string, std::string_view, std::less<>>;

// The text of each member of an object. Keys outside `known` are refused: a field nobody reads
// may change what the file means. `read_nested(key)` may read a member's value itself: then true.
template <typename ReadNested>
Members members(JsonWalker& walker, const std::string& name,
                std::initializer_list<std::string_view> known, ReadNested read_nested) {
  Members found;
  walker.object([&](std::string_view key) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      fail(ErrorKind::kInput, "{}: unknown field {}", name, key);
    }
    const auto [member, fresh] = found.emplace(key, std::string_view());
    if (!fresh) fail(ErrorKind::kInput, "{}: field {} stands twice", name, key);
    if (!read_nested(key)) member->second = walker.raw();
  });
  return found;
}

std::string_view need(const Members& object, std::string_view key, const std::string& name) {
  const auto found = object.find(key);
  if (found == object.end()) fail(ErrorKind::kInput, "{}: no field {}", name, key);
  return found->second;
}

Json value_or_null(const Members& object, std::string_view key, const std::string& name) {
  const auto found = object.find(key);
  if (found == object.end()) return nullptr;
  return parse_small_json(found->second, fmt::format("{}.{}", name, key));
}

std::string type_of(const Json& part, const std::string& name) {
  if (!part.is_object() || !part.contains("type") || !part["type"].is_string()) {
    fail(ErrorKind::kInput, "{}: expected an object with a type", name);
  }
  return part["type"].get<std::string>();
}

// model.vocab: tokens over the byte alphabet go to `file.vocabulary`, all others, which only
// merges and added tokens can name, to `file.others`.
void read_vocabulary(std::string_view text, const std::string& name, TokenizerFile& file) {
  JsonWalker walker = JsonWalker::of_raw(text, name);
  file.vocabulary.reserve(text.size() / 40, text.size() / 3);
  std::vector<std::int32_t> ids;
  std::string bytes;
  walker.object([&](std::string_view token) {
    const std::int32_t id = walker.id();
    ids.push_back(id);
    bytes.clear();
    const bool fresh = append_alphabet_bytes(token, bytes) ? file.vocabulary.insert(bytes, id)
                                                           : file.others.insert(token, id);
    if (!fresh) fail(ErrorKind::kInput, "{}: token {} stands twice", name, token);
  });
  walker.end();
  if (ids.empty()) fail(ErrorKind::kInput, "{}: no entries", name);
  if (!std::is_sorted(ids.begin(), ids.end())) std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice != ids.end()) fail(ErrorKind::kInput, "{}: id {} stands twice", name, *twice);
  file.n_vocabulary = ids.size();
}

// Finds the ids of a merge: its two tokens and the one they make.
class MergeResolver {
 public:
  explicit MergeResolver(const TokenizerFile& file) : file_(file) {}

  struct Ids {
    std::int32_t left, right, joined;  // -1: not in the vocabulary
  };
  Ids resolve(std::string_view left, std::string_view right) {
    bytes_.clear();
    const bool left_known = append_alphabet_bytes(left, bytes_);
    const std::size_t n_left = bytes_.size();
    if (!left_known || !append_alphabet_bytes(right, bytes_)) {
      return {file_.spelled_id(left), file_.spelled_id(right),
              file_.spelled_id(std::string(left).append(right))};
    }
    const std::string_view whole = bytes_;
    return {file_.vocabulary.find(whole.substr(0, n_left)),
            file_.vocabulary.find(whole.substr(n_left)), joined_id(whole)};
  }

 private:
  // Vocabularies list what the merges make in the order of the merges: the next entry is tried
  // before the table, which saves a third of the look-ups of a large file.
  std::int32_t joined_id(std::string_view whole) {
    const TokenTable& vocabulary = file_.vocabulary;
    if (next_ >= vocabulary.size() || vocabulary.token(next_) != whole) {
      const std::int32_t index = vocabulary.index_of(whole);
      if (index < 0) return -1;
      next_ = static_cast<std::size_t>(index);
    }
    return vocabulary.id(next_++);
  }

  const TokenizerFile& file_;
  std::string bytes_;
  std::size_t next_ = 0;
};

// Reads one merge, "a b" or ["a", "b"], into `left` and `right`. False when it has another form.
bool read_merge(JsonWalker& walker, std::string& left, std::string& right) {
  if (walker.peek() == '[') {
    std::size_t n_parts = 0;
    walker.array([&] {
      const std::string_view part = walker.string();
      if (n_parts < 2) (n_parts == 0 ? left : right) = part;
      ++n_parts;
    });
    return n_parts == 2;
  }
  const std::string_view both = walker.string();
  const std::size_t space = both.find(' ');
  if (space == std::string_view::npos || both.find(' ', space + 1) != std::string_view::npos) {
    return false;
  }
  left = both.substr(0, space);
  right = both.substr(space + 1);
  return true;
}

MergeTable read_merges(std::string_view text, const std::string& name, const TokenizerFile& file) {
  std::vector<MergeResolver::Ids> merges;
  merges.reserve(text.size() / 16);
  MergeResolver resolver(file);
  JsonWalker walker = JsonWalker::of_raw(text, name);
  std::string left, right;
  walker.array([&] {
    if (!read_merge(walker, left, right)) {
      fail(ErrorKind::kInput, "{}[{}]: not two tokens", name, merges.size());
    }
    const MergeResolver::Ids ids = resolver.resolve(left, right);
    if (ids.left < 0 || ids.right < 0 || ids.joined < 0) {
      fail(ErrorKind::kInput, "{}[{}]: {} + {} or what they make is not in model.vocab", name,
           merges.size(), left, right);
    }
    merges.push_back(ids);
  });
  walker.end();
  if (merges.empty()) fail(ErrorKind::kInput, "{}: no merges", name);
  MergeTable table(merges.size());
  for (std::uint32_t rank = 0; rank < merges.size(); ++rank) {
    table.insert(merges[rank].left, merges[rank].right, {rank, merges[rank].joined});
  }
  return table;
}

// The model's settings that change the ids must have the value of plain byte-level BPE.
void check_model(const Members& model, const std::string& name) {
  const Json type = value_or_null(model, "type", name);
  if (type != "BPE")
    fail(ErrorKind::kInput, "{}.type: {} is not built, only BPE", name, type.dump());
  const auto refuse = [&](std::string_view key, std::initializer_list<Json> allowed) {
    const Json value = value_or_null(model, key, name);
    if (value.is_null() || std::find(allowed.begin(), allowed.end(), value) != allowed.end())
      return;
    fail(ErrorKind::kInput, "{}.{}: {} is not built", name, key, value.dump());
  };
  refuse("dropout", {0});
  refuse("unk_token", {});
  refuse("continuing_subword_prefix", {""});
  refuse("end_of_word_suffix", {""});
  refuse("byte_fallback", {false});
  refuse("ignore_merges", {false});
}

// normalizer: NFC, nothing, or a sequence of these. Returns whether it is NFC.
bool read_normalizer(const Json& part, const std::string& name) {
  if (part.is_null()) return false;
  const std::string type = type_of(part, name);
  if (type == "NFC") return true;
  if (type != "Sequence") fail(ErrorKind::kInput, "{}: normaliser {} is not built", name, type);
  bool nfc = false;
  const Json& steps = part.value("normalizers", Json());
  if (!steps.is_array()) fail(ErrorKind::kInput, "{}: expected a list of normalizers", name);
  for (const Json& step : steps) {
    const std::string inner = type_of(step, name);
    if (inner != "NFC") fail(ErrorKind::kInput, "{}: normaliser {} is not built", name, inner);
    nfc = true;
  }
  return nfc;
}

// The pattern of a Split step; a problem when its settings are not those of the two known ones.
void read_split(const Json& step, FileRules& rules) {
  const Json pattern = step.value("pattern", Json());
  const Json regex = pattern.is_object() ? pattern.value("Regex", Json()) : Json();
  for (const SplitPattern known : {SplitPattern::kQwen2, SplitPattern::kQwen3_5}) {
    if (regex == Json(pattern_regex(known))) rules.pattern = known;
  }
  if (!rules.pattern) rules.problem = "pattern " + pattern.dump() + " is not built";
  if (step.value("behavior", Json()) != "Isolated" || step.value("invert", Json()) != false) {
    rules.problem = "Split is built only as Isolated and not inverted";
  }
}

// pre_tokenizer: types nobody knows are an error at once; settings only where they are followed.
FileRules read_pre_tokenizer(const Json& part, const std::string& name) {
  FileRules rules;
  std::vector<Json> steps;
  if (!part.is_null()) {
    if (type_of(part, name) == "Sequence") {
      const Json list = part.value("pretokenizers", Json());
      if (!list.is_array()) fail(ErrorKind::kInput, "{}: expected a list of pretokenizers", name);
      steps.assign(list.begin(), list.end());
    } else {
      steps.push_back(part);
    }
  }
  std::string types;
  for (const Json& step : steps) {
    const std::string type = type_of(step, name);
    types += (types.empty() ? "" : ", ") + type;
    if (type == "Split") {
      read_split(step, rules);
    } else if (type == "ByteLevel") {
      if (step.value("add_prefix_space", Json(true)) != false ||
          step.value("use_regex", Json(true)) != false) {
        rules.problem = "ByteLevel is built only without add_prefix_space and use_regex";
      }
    } else {
      fail(ErrorKind::kInput, "{}: pre-tokenizer {} is not built", name, type);
    }
  }
  if (types != "Split, ByteLevel") rules.problem = "steps [" + types + "] are not Split, ByteLevel";
  if (!rules.problem.empty()) rules.pattern.reset();
  return rules;
}

}  // namespace

std::int32_t TokenizerFile::spelled_id(std::string_view spelled) const {
  std::string bytes;
  return append_alphabet_bytes(spelled, bytes) ? vocabulary.find(bytes) : others.find(spelled);
}

AddedToken read_added_token(const Json& entry, const std::string& where) {
  if (!entry.is_object() || !entry.contains("content") || !entry["content"].is_string()) {
    fail(ErrorKind::kInput, "{}: expected an object with a content", where);
  }
  AddedToken token{entry["content"].get<std::string>(), -1};
  for (const auto& [key, value] : entry.items()) {
    if (key == "content" || key == "id" || key == "special" || key == "__type") continue;
    const bool known =
        key == "single_word" || key == "lstrip" || key == "rstrip" || key == "normalized";
    if (!known) fail(ErrorKind::kInput, "{}: unknown field {}", where, key);
    if (value != false) fail(ErrorKind::kInput, "{}.{}: {} is not built", where, key, value.dump());
  }
  if (!entry.contains("normalized") && entry.value("special", Json(false)) != true) {
    fail(ErrorKind::kInput, "{}.normalized: true, its default, is not built", where);
  }
  return token;
}

TokenizerFile read_tokenizer_json(std::string_view text, const std::string& name) {
  const std::string model_name = name + ": model";
  JsonWalker walker(text, name);
  Members model;
  const auto read_model = [&](std::string_view key) {
    if (key != "model") return false;
    model =
        members(walker, model_name,
                {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                 "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"},
                [](std::string_view) { return false; });
    return true;
  };
  const Members top = members(walker, name,
                              {"version", "truncation", "padding", "added_tokens", "normalizer",
                               "pre_tokenizer", "post_processor", "decoder", "model"},
                              read_model);
  walker.end();
  need(top, "model", name);
  for (const char* unread : {"version", "truncation", "padding", "post_processor", "decoder"}) {
    value_or_null(top, unread, name);  // must at least be JSON
  }
  check_model(model, model_name);
  FileRules rules =
      read_pre_tokenizer(value_or_null(top, "pre_tokenizer", name), name + ": pre_tokenizer");
  rules.nfc = read_normalizer(value_or_null(top, "normalizer", name), name + ": normalizer");

  TokenizerFile file{{}, {}, 0, MergeTable(0), {}, std::move(rules)};
  read_vocabulary(need(model, "vocab", model_name), model_name + ".vocab", file);
  file.merges = read_merges(need(model, "merges", model_name), model_name + ".merges", file);

  const Json added = value_or_null(top, "added_tokens", name);
  if (!added.is_null() && !added.is_array()) {
    fail(ErrorKind::kInput, "{}: added_tokens is not a list", name);
  }
  for (std::size_t i = 0; i < added.size(); ++i) {
    const std::string where = fmt::format("{}: added_tokens[{}]", name, i);
    AddedToken token = read_added_token(added[i], where);
    const Json id = added[i].value("id", Json());
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > 0x7FFFFFFF) {
      fail(ErrorKind::kInput, "{}.id: expected a number from 0 to 2^31 - 1", where);
    }
    token.id = id.get<std::int32_t>();
    file.added.push_back(std::move(token));
  }
  return file;
}

}  // namespace jemm

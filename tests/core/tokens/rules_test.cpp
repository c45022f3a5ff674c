// Which rules a checkpoint's tokenizer follows, and which ids its added tokens get. The expected
// values were printed by transformers 5.17.0 for the same files.
#include <doctest/doctest.h>

#include "core/tokens/support.h"

namespace jemm::test {
namespace {

using Ids = std::vector<std::int32_t>;
using Json = nlohmann::json;

// tiny-a's tokenizer.json under another class.
MemoryFiles tiny(const Json& config, const Json& model = {{"model_type", "qwen3_5"}}) {
  MemoryFiles files;
  files.files["tokenizer.json"] = read(JEMM_SOURCE_DIR "/fixtures/tiny-a/base/tokenizer.json");
  files.files["tokenizer_config.json"] = config.dump();
  files.files["config.json"] = model.dump();
  return files;
}

Json class_named(const Json& name) {
  return {{"tokenizer_class", name}};
}

// A vocabulary of eight entries, with the given added tokens.
MemoryFiles small(const char* tokenizer_class, std::vector<std::pair<int, const char*>> added,
                  Json config, int id_of_abc = 4) {
  Json file = Json::parse(read(JEMM_SOURCE_DIR "/fixtures/tiny-a/base/tokenizer.json"));
  file["model"]["vocab"] = {{"a", 0},           {"b", 1}, {"c", 2}, {"ab", 3},
                            {"abc", id_of_abc}, {"Ġ", 5}, {"d", 6}, {"Ċ", 7}};
  file["model"]["merges"] = {"a b", "ab c"};
  file["added_tokens"] = Json::array();
  for (const auto& [id, content] : added) {
    file["added_tokens"].push_back({{"id", id},
                                    {"content", content},
                                    {"special", true},
                                    {"normalized", false},
                                    {"lstrip", false},
                                    {"rstrip", false},
                                    {"single_word", false}});
  }
  config["tokenizer_class"] = tokenizer_class;
  MemoryFiles files;
  files.files["tokenizer.json"] = file.dump();
  files.files["tokenizer_config.json"] = config.dump();
  files.files["config.json"] = R"({"model_type": "qwen3_5"})";
  return files;
}

// Ids of <x>, <y>, ... in `files`.
Ids added_ids(const MemoryFiles& files, std::initializer_list<const char*> contents) {
  const auto tokenizer = load_tokenizer(files);
  Ids ids;
  for (const char* content : contents) ids.push_back(tokenizer->added_token(content));
  return ids;
}

}  // namespace

TEST_CASE("the class chooses the pattern") {
  const auto pattern = [](const MemoryFiles& files, const TokenizerOptions& options = {}) {
    return load_tokenizer(files, options)->description().pattern;
  };
  CHECK(pattern(tiny(class_named("Qwen2Tokenizer"))) == "qwen2");
  CHECK(pattern(tiny(class_named("Qwen2TokenizerFast"))) == "qwen2");
  CHECK(pattern(tiny(class_named("Qwen3_5Tokenizer"))) == "qwen3_5");
  CHECK(pattern(tiny(class_named("Qwen3_5TokenizerFast"))) == "qwen3_5");
  CHECK(pattern(tiny(Json::object())) == "qwen3_5");
  CHECK(pattern(tiny(class_named(nullptr))) == "qwen3_5");
  CHECK(pattern(tiny(class_named("PreTrainedTokenizerFast"))) == "qwen3_5");  // the file's
  CHECK(pattern(tiny(class_named("TokenizersBackend"))) == "qwen3_5");
  CHECK(pattern(tiny(Json::object(), {{"model_type", "qwen3_5"},
                                      {"tokenizer_class", "Qwen2Tokenizer"}})) == "qwen2");
  CHECK(pattern(tiny(class_named("Qwen2Tokenizer")), {"qwen3_5"}) == "qwen3_5");
  CHECK(pattern(tiny(class_named("Qwen2Tokenizer")), {"file"}) == "qwen3_5");
  CHECK(pattern(tiny(class_named("LlamaTokenizer")), {"qwen2"}) == "qwen2");
}

TEST_CASE("the file's pattern may be either of the two") {
  MemoryFiles files = tiny(class_named("TokenizersBackend"));
  std::string& text = files.files["tokenizer.json"];
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"[\\\\p{L}\\\\p{M}]+", "\\\\p{L}+"},
        {"[^\\\\s\\\\p{L}\\\\p{M}\\\\p{N}]", "[^\\\\s\\\\p{L}\\\\p{N}]"}}) {
    REQUIRE(text.find(from) != std::string::npos);
    text.replace(text.find(from), from.size(), to);
  }
  CHECK(load_tokenizer(files)->description().pattern == "qwen2");
}

TEST_CASE("without a normaliser the file's rules leave text as it is, the classes' rules do not") {
  MemoryFiles files = tiny(class_named("TokenizersBackend"));
  Json file = Json::parse(files.files["tokenizer.json"]);
  file["normalizer"] = nullptr;
  files.files["tokenizer.json"] = file.dump();
  const auto plain = load_tokenizer(files);
  const auto normalising = load_tokenizer(files, {"qwen3_5"});
  CHECK(encode(*plain, "e\u0301") != encode(*plain, "\u00E9"));
  CHECK(encode(*normalising, "e\u0301") == encode(*plain, "\u00E9"));
}

TEST_CASE("a class without rules is an error that names it") {
  for (const char* name :
       {"LlamaTokenizer", "FooTokenizer", "Qwen2VLProcessor", "qwen2tokenizer"}) {
    CHECK(error_of(ErrorKind::kInput, [&] {
            load_tokenizer(tiny(class_named(name)));
          }).find(name) != std::string::npos);
  }
  CHECK(error_of(ErrorKind::kInput, [] {
          load_tokenizer(tiny(Json::object(), {{"model_type", "llama"}}));
        }).find("llama") != std::string::npos);
  error_of(ErrorKind::kInput, [] { load_tokenizer(tiny(class_named(7))); });
  error_of(ErrorKind::kInput, [] { load_tokenizer(tiny(Json::array())); });
  error_of(ErrorKind::kUsage, [] { load_tokenizer(tiny(Json::object()), {"gpt2"}); });
  error_of(ErrorKind::kInput, [] { load_tokenizer(MemoryFiles()); });
}

TEST_CASE("settings of the configuration that change the ids are refused by name") {
  for (const char* key : {"add_prefix_space", "split_special_tokens"}) {
    Json config = class_named("Qwen2Tokenizer");
    config[key] = false;
    CHECK(load_tokenizer(tiny(config)) != nullptr);
    config[key] = true;
    CHECK(error_of(ErrorKind::kInput, [&] { load_tokenizer(tiny(config)); }).find(key) !=
          std::string::npos);
  }
  Json config = class_named("Qwen2Tokenizer");
  config["fast_tokenizer_files"] = Json::array();
  error_of(ErrorKind::kInput, [&] { load_tokenizer(tiny(config)); });
  MemoryFiles legacy = tiny(class_named("Qwen2Tokenizer"));
  legacy.files["added_tokens.json"] = "{}";
  CHECK(error_of(ErrorKind::kInput, [&] { load_tokenizer(legacy); }).find("added_tokens.json") !=
        std::string::npos);
}

TEST_CASE("special tokens of the configuration are added behind the vocabulary, in a fixed order") {
  const Json config{{"eos_token", "<x>"},
                    {"bos_token", "<b>"},
                    {"pad_token", "<p>"},
                    {"unk_token", "<u>"},
                    {"extra_special_tokens", {"<e>"}},
                    {"image_token", "<i>"},
                    {"cls_token", "<c>"}};
  for (const char* name : {"Qwen2Tokenizer", "Qwen3_5Tokenizer", "PreTrainedTokenizerFast"}) {
    CHECK(added_ids(small(name, {}, config),
                    {"<b>", "<x>", "<u>", "<p>", "<c>", "<i>", "<e>", "<|endoftext|>"}) ==
          Ids{8, 9, 10, 11, 12, 13, 14, -1});
  }
  CHECK(added_ids(small("Qwen2Tokenizer", {}, Json::object()), {"<|endoftext|>"}) == Ids{8});
  CHECK(added_ids(small("Qwen3_5Tokenizer", {}, Json::object()), {"<|endoftext|>"}) == Ids{8});
  CHECK(added_ids(small("PreTrainedTokenizerFast", {}, Json::object()), {"<|endoftext|>"}) ==
        Ids{-1});
  CHECK(added_ids(small("Qwen2Tokenizer", {},
                        {{"eos_token", nullptr}, {"pad_token", nullptr}, {"unk_token", nullptr}}),
                  {"<|endoftext|>"}) == Ids{-1});
  // Gaps in the vocabulary's ids do not count: the next id is the number of entries.
  CHECK(added_ids(small("Qwen2Tokenizer", {}, {{"eos_token", "<x>"}}, 40),
                  {"<x>", "<|endoftext|>"}) == Ids{8, 9});
  // A token that the vocabulary has keeps its id, and is found before all else.
  const auto files = small("Qwen2Tokenizer", {{8, "<x>"}}, {{"eos_token", "ab"}});
  CHECK(added_ids(files, {"ab", "<x>", "<|endoftext|>"}) == Ids{3, 8, 9});
  CHECK(encode(*load_tokenizer(files), "ab<x>abc") == Ids{3, 8, 3, 2});
}

TEST_CASE("the Qwen classes take the configuration's added tokens, the others the file's first") {
  const Json config{{"added_tokens_decoder", {{"8", {{"content", "<z>"}, {"special", true}}}}}};
  CHECK(added_ids(small("Qwen2Tokenizer", {{8, "<x>"}, {9, "<y>"}}, config),
                  {"<z>", "<x>", "<y>", "<|endoftext|>"}) == Ids{8, -1, -1, 9});
  Json free = config;  // behind <x> and <y> the reference gives 10, not the declared 8
  CHECK(error_of(ErrorKind::kInput, [&] {
          load_tokenizer(small("PreTrainedTokenizerFast", {{8, "<x>"}, {9, "<y>"}}, free));
        }).find("declared as 8, but would become 10") != std::string::npos);
  free["added_tokens_decoder"] = {{"10", {{"content", "<z>"}, {"special", true}}}};
  CHECK(added_ids(small("PreTrainedTokenizerFast", {{8, "<x>"}, {9, "<y>"}}, free),
                  {"<x>", "<y>", "<z>"}) == Ids{8, 9, 10});
}

TEST_CASE("added tokens whose declared id the reference would not give are refused") {
  for (const char* name : {"Qwen2Tokenizer", "PreTrainedTokenizerFast"}) {
    CHECK(error_of(ErrorKind::kInput, [&] {
            load_tokenizer(small(name, {{20, "<x>"}, {9, "<y>"}}, Json::object()));
          }).find("would become") != std::string::npos);
  }
  Json config{{"added_tokens_decoder", {{"x", {{"content", "<z>"}, {"special", true}}}}}};
  CHECK(error_of(ErrorKind::kInput, [&] {
          load_tokenizer(small("Qwen2Tokenizer", {}, config));
        }).find("added_tokens_decoder[x]") != std::string::npos);
  config["added_tokens_decoder"] = 7;
  error_of(ErrorKind::kInput, [&] { load_tokenizer(small("Qwen2Tokenizer", {}, config)); });
}

TEST_CASE("an older special_tokens_map.json counts where the configuration lists no added tokens") {
  MemoryFiles files = small("Qwen2Tokenizer", {}, {{"eos_token", "<old>"}});
  files.files["special_tokens_map.json"] = R"({"eos_token": {"content": "<x>", "special": true}})";
  CHECK(added_ids(files, {"<x>", "<|endoftext|>", "<old>"}) == Ids{8, 9, -1});
}

}  // namespace jemm::test

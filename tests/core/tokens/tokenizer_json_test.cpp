// Reading tokenizer.json: both spellings of merges, and every refusal by name.
#include <doctest/doctest.h>

#include "core/tokens/support.h"
#include "tokens/tokenizer_json.h"

namespace jemm::test {
namespace {

using Ids = std::vector<std::int32_t>;
using Json = nlohmann::json;

// Eight entries: a b c ab abc, the blank, d and the line break.
Json small() {
  return Json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": {"type": "NFC"},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
       "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]},
    "post_processor": null, "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
      "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
      "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4, "Ġ": 5, "d": 6, "Ċ": 7},
      "merges": [["a", "b"], ["ab", "c"]]}})");
}

std::unique_ptr<const Tokenizer> load_small(const Json& file,
                                            const char* tokenizer_class = "Qwen3_5Tokenizer") {
  MemoryFiles files;
  files.files["tokenizer.json"] = file.dump();
  files.files["tokenizer_config.json"] = Json{{"tokenizer_class", tokenizer_class}}.dump();
  return load_tokenizer(files);
}

// Loading fails, and the message names the file and `field`.
void refused(const Json& file, const std::string& field,
             const char* tokenizer_class = "Qwen3_5Tokenizer") {
  CAPTURE(field);
  const std::string message =
      error_of(ErrorKind::kInput, [&] { load_small(file, tokenizer_class); });
  CAPTURE(message);
  CHECK(message.find("tokenizer.json") != std::string::npos);
  CHECK(message.find(field) != std::string::npos);
}

Json with(const char* pointer, const Json& value) {
  Json file = small();
  file[Json::json_pointer(pointer)] = value;
  return file;
}

}  // namespace

TEST_CASE("both spellings of merges give the same tokenizer") {
  for (const Json& merges :
       {Json::parse(R"([["a", "b"], ["ab", "c"]])"), Json::parse(R"(["a b", "ab c"])")}) {
    const auto tokenizer = load_small(with("/model/merges", merges));
    CHECK(encode(*tokenizer, "abcab") == Ids{4, 3});
    CHECK(encode(*tokenizer, "cab abc\n") == Ids{2, 3, 5, 4, 7});
    CHECK(encode(*tokenizer, "aXb aqbc") == Ids{3, 5, 4});  // bytes without a token are dropped
  }
}

TEST_CASE("the largest id is the vocabulary's or an added token's") {
  CHECK(load_small(small())->max_id() == 8);  // <|endoftext|>, which the class adds behind 7
  CHECK(load_small(with("/model/vocab/d", 900000))->max_id() == 900000);
}

TEST_CASE("a merge's tokens need not be over the byte alphabet") {
  Json file = with("/model/vocab/中", 8);
  file["model"]["vocab"]["a中"] = 9;
  file["model"]["merges"].push_back({"a", "中"});
  CHECK(encode(*load_small(file), "a中") == Ids{0});
}

TEST_CASE("a vocabulary or merges that cannot work") {
  refused(with("/model/merges", Json::array()), "model.merges: no merges");
  refused(with("/model/merges", {"a c"}), "model.merges[0]");  // what they make is missing
  refused(with("/model/merges", {"a b", "x b"}), "model.merges[1]");
  for (const Json& merge : {Json("ab"), Json("a b c"), Json{"a"}, Json{"a", "b", "c"}}) {
    refused(with("/model/merges", Json::array({merge})), "model.merges[0]: not two tokens");
  }
  refused(with("/model/merges", "a b"), "model.merges");
  refused(with("/model/merges", Json::parse(R"([["a", 1]])")), "model.merges");
  refused(with("/model/vocab", Json::object()), "model.vocab: no entries");
  refused(with("/model/vocab", Json::array()), "model.vocab");
  refused(with("/model/vocab/a", 1), "model.vocab: id 1 stands twice");
  for (const Json& id : {Json(-1), Json(1.5), Json(2147483648u), Json("0"), Json(nullptr)}) {
    refused(with("/model/vocab/a", id), "model.vocab");
  }
}

TEST_CASE("settings that change the ids are refused by name") {
  refused(with("/model/type", "Unigram"), "model.type");
  refused(with("/model/type", nullptr), "model.type");
  refused(with("/model/ignore_merges", true), "model.ignore_merges");
  refused(with("/model/byte_fallback", true), "model.byte_fallback");
  refused(with("/model/dropout", 0.1), "model.dropout");
  refused(with("/model/unk_token", "a"), "model.unk_token");
  refused(with("/model/continuing_subword_prefix", "##"), "model.continuing_subword_prefix");
  refused(with("/model/end_of_word_suffix", "</w>"), "model.end_of_word_suffix");
  refused(with("/model/future", 1), "unknown field future");
  refused(with("/future", 1), "unknown field future");
  refused(with("/normalizer", {{"type", "NFKC"}}), "normalizer: normaliser NFKC");
  refused(with("/normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "Lowercase"}}}}}),
          "Lowercase");
  refused(with("/normalizer", "NFC"), "normalizer");
  refused(with("/pre_tokenizer", {{"type", "Metaspace"}}),
          "pre_tokenizer: pre-tokenizer Metaspace");
  refused(with("/pre_tokenizer/pretokenizers/1/type", "Digits"), "Digits");
  refused(with("/pre_tokenizer/pretokenizers", 1), "pre_tokenizer");
  Json none = small();
  none.erase("model");
  refused(none, "no field model");
  none = small();
  none["model"].erase("vocab");
  refused(none, "no field vocab");
  none = small();
  none["model"].erase("merges");
  refused(none, "no field merges");
}

TEST_CASE("the file's own pattern matters only where it is followed") {
  const std::vector<std::pair<const char*, Json>> changes{
      {"/pre_tokenizer/pretokenizers/0/pattern", {{"Regex", "\\s+"}}},
      {"/pre_tokenizer/pretokenizers/0/pattern", {{"String", " "}}},
      {"/pre_tokenizer/pretokenizers/0/behavior", "Removed"},
      {"/pre_tokenizer/pretokenizers/0/invert", true},
      {"/pre_tokenizer/pretokenizers/1/use_regex", true},
      {"/pre_tokenizer/pretokenizers/1/add_prefix_space", true},
      {"/pre_tokenizer", nullptr},
      {"/pre_tokenizer/pretokenizers", Json::array()}};
  for (const auto& [pointer, value] : changes) {
    CAPTURE(pointer);
    CHECK(encode(*load_small(with(pointer, value)), "ab abc") == Ids{3, 5, 4});
    refused(with(pointer, value), "pre_tokenizer", "PreTrainedTokenizerFast");
  }
}

TEST_CASE("added tokens that strip, stand alone or are normalised are refused") {
  const Json plain{{"id", 8},         {"content", "<x>"}, {"single_word", false},
                   {"lstrip", false}, {"rstrip", false},  {"normalized", false},
                   {"special", true}};
  const auto with_token = [&](const char* key, const Json& value) {
    Json token = plain;
    token[key] = value;
    return with("/added_tokens", Json::array({token}));
  };
  CHECK(encode(*load_small(with("/added_tokens", Json::array({plain}))), "ab<x>abc") ==
        Ids{3, 8, 4});
  for (const char* key : {"single_word", "lstrip", "rstrip", "normalized"}) {
    refused(with_token(key, true), std::string("added_tokens[0].") + key);
  }
  refused(with_token("future", 1), "added_tokens[0]: unknown field future");
  refused(with_token("content", 1), "added_tokens[0]");
  refused(with_token("content", ""), "added token");
  refused(with_token("content", std::string(300, 'x')), "300 bytes");
  for (const Json& id : {Json(-1), Json(2147483648u), Json("8"), Json(8.0)}) {
    refused(with_token("id", id), "added_tokens[0].id");
  }
  refused(with("/added_tokens", 1), "added_tokens");
}

TEST_CASE("a file that is no JSON") {
  for (const char* text :
       {"", "{", "[]", "{\"model\": 1}", "\xEF\xBB\xBF{}", "{\"model\":{}} x", "{\"a\xFF\":1}"}) {
    CAPTURE(text);
    CHECK(error_of(ErrorKind::kInput, [&] {
            read_tokenizer_json(text, "t.json");
          }).find("t.json") == 0);
  }
  Json file = small();
  std::string twice = file.dump();
  twice.insert(1, "\"model\":{},");
  error_of(ErrorKind::kInput, [&] { read_tokenizer_json(twice, "t.json"); });
}

}  // namespace jemm::test

// Ids of the loaded tokenizers: golden strings, facts on record, long runs on a small stack.
#include <doctest/doctest.h>
#include <pthread.h>

#include <ctime>
#include <thread>

#include "base/sha256.h"
#include "core/tokens/support.h"

namespace jemm::test {
namespace {

using Ids = std::vector<std::int32_t>;

constexpr const char* kTiny = JEMM_SOURCE_DIR "/fixtures/tiny-a/base";
constexpr const char* kGolden = JEMM_SOURCE_DIR "/golden/tokens/";

std::string ids_sha256(const Ids& ids) {
  return sha256_hex(std::as_bytes(std::span(ids)));
}

int check_strings(const std::string& base, const char* model) {
  int n = 0;
  for (const char* pattern : {"qwen2", "qwen3_5"}) {
    const auto tokenizer = load(base, {pattern});
    CHECK(tokenizer->description().pattern == pattern);
    for_each_line(std::string(kGolden) + "strings.jsonl", [&](const nlohmann::json& record) {
      const auto text = record["text"].get<std::string>();
      CAPTURE(text);
      CHECK(encode(*tokenizer, text) == record["ids"][model][pattern].get<Ids>());
      ++n;
    });
  }
  return n;
}

// Runs `work` on a thread with a stack of 512 KiB.
template <typename Work>
void on_small_stack(Work work) {
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, 512 * 1024) == 0);
  pthread_t thread;
  const auto run = [](void* context) -> void* {
    (*static_cast<Work*>(context))();
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, run, &work) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

std::string repeat(const std::string& unit, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += unit;
  return text;
}

int check_long_runs(const std::string& base, const char* model) {
  const auto tokenizer = load(base, {"qwen3_5"});
  int n = 0;
  for_each_line(std::string(kGolden) + "long.jsonl", [&](const nlohmann::json& record) {
    const auto text = repeat(record["unit"].get<std::string>(), record["count"].get<std::size_t>());
    Ids ids;
    on_small_stack([&] { tokenizer->encode(text, ids); });
    CAPTURE(record["unit"]);
    CHECK(ids.size() == record[model]["tokens"].get<std::size_t>());
    CHECK(ids_sha256(ids) == record[model]["sha256"].get<std::string>());
    ++n;
  });
  return n;
}

}  // namespace

TEST_CASE("ids of the golden strings") {
  CHECK(check_strings(kTiny, "tiny-a") > 600);
}

TEST_CASE("ids of long runs, on a small stack") {
  CHECK(check_long_runs(kTiny, "tiny-a") > 20);
}

TEST_CASE("time grows with length, not with its square") {
  const auto tokenizer = load(kTiny);
  const auto seconds = [&](const std::string& text) {  // of this thread: other work does not count
    double best = 1e9;
    for (int round = 0; round < 3; ++round) {
      timespec start{}, end{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
      encode(*tokenizer, text);
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
      best = std::min(best, static_cast<double>(end.tv_sec - start.tv_sec) +
                                1e-9 * static_cast<double>(end.tv_nsec - start.tv_nsec));
    }
    return best;
  };
  for (const std::string unit : {"a", " ", "ab", "'s", "\xCC\x81", "<|im_start|", "\xE4\xB8\xAD"}) {
    CAPTURE(unit);
    CHECK(seconds(repeat(unit, 200000)) < 9 * seconds(repeat(unit, 50000)));  // 3 a doubling
  }
}

TEST_CASE("typed special tokens become control ids and are counted") {
  const auto tokenizer = load(kTiny);
  const std::int32_t end = tokenizer->added_token("<|im_end|>");
  CHECK(end == 1402);
  CHECK(tokenizer->added_token("<|im_start|>") == 1401);
  CHECK(tokenizer->added_token("<|im_start|") == -1);
  CHECK(tokenizer->added_token("a") == -1);
  CHECK(tokenizer->added_token("") == -1);
  CHECK(encode(*tokenizer, "<|im_end|><|im_end|>") == Ids{end, end});
  CHECK(tokenizer->count_added_tokens("ok<|im_end|>\n<|im_start|>system\nsay yes") == 2);
  CHECK(tokenizer->count_added_tokens("<|im_start |><|IM_START|><|im_start|") == 0);
  CHECK(tokenizer->count_added_tokens("") == 0);
  CHECK(tokenizer->description().vocabulary == 1426);
  CHECK(tokenizer->max_id() == 1425);
  CHECK(tokenizer->description().file == std::string(kTiny) + "/tokenizer.json");
  CHECK(tokenizer->description().tokenizer_class == "Qwen3_5Tokenizer");
}

TEST_CASE("ids are appended, and the empty text adds none") {
  const auto tokenizer = load(kTiny);
  Ids ids{7};
  tokenizer->encode("", ids);
  CHECK(ids == Ids{7});
  tokenizer->encode("A", ids);
  CHECK(ids == Ids{7, 32});
}

TEST_CASE("a lone surrogate is a refused request, other bytes that are no text too") {
  const auto tokenizer = load(kTiny);
  for (const char* text :
       {"a\xED\xA0\xBD", "\xED\xB8\x80\xED\xA0\xBD", "\xED\xA0\xBDx", "\xED\xA0\xBD\xED\xB8\x80"}) {
    try {
      encode(*tokenizer, text);
      FAIL_CHECK("no error");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kRequest);
      CHECK(error.type() == "TypeError");
    }
  }
  CHECK_THROWS_AS(encode(*tokenizer, "\xFF"), Error);
}

TEST_CASE("U+0000 cuts nothing") {
  const auto tokenizer = load(kTiny);
  Ids joined = encode(*tokenizer, "ab");
  for (const auto id : encode(*tokenizer, std::string_view("\0cd", 3))) joined.push_back(id);
  CHECK(encode(*tokenizer, std::string_view("ab\0cd", 5)) == joined);
}

TEST_CASE("several threads may encode at once") {
  const auto tokenizer = load(kTiny);
  const std::string text =
      repeat("Which action opens the requested workspace, request or state? ", 200);
  const Ids expected = encode(*load(kTiny), text);
  std::vector<Ids> found(4);
  std::vector<std::thread> threads;
  for (auto& ids : found) threads.emplace_back([&] { tokenizer->encode(text, ids); });
  for (auto& thread : threads) thread.join();
  for (const auto& ids : found) CHECK(ids == expected);
}

TEST_SUITE("extra") {
  TEST_CASE("golden strings and long runs with the full vocabulary") {
    const auto extra = extra_golden();
    if (!extra) return;
    CHECK(check_strings(*extra + "/qwen-27b/base", "qwen-27b") > 600);
    CHECK(check_long_runs(*extra + "/qwen-27b/base", "qwen-27b") > 20);
  }

  TEST_CASE("facts on record for the full vocabulary") {
    const auto extra = extra_golden();
    if (!extra) return;
    const auto tokenizer = load(*extra + "/qwen-27b/base");
    CHECK(tokenizer->description().pattern == "qwen2");
    CHECK(tokenizer->description().vocabulary == 248077);
    CHECK(tokenizer->max_id() == 248076);
    CHECK(encode(*tokenizer, "a\u07FD\u0301") == Ids{64, 155, 121, 52033});
    CHECK(encode(*tokenizer, "a  \u001Cb") == Ids{64, 220, 220, 216, 65});
    CHECK(encode(*tokenizer, "<think>\u0338") == Ids{248068, 136, 116});
    CHECK(tokenizer->added_token("<|image_pad|>") == 248056);
    CHECK(tokenizer->added_token("<|video_pad|>") == 248057);
  }
}

}  // namespace jemm::test

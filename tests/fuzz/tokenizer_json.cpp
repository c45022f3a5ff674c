// A hostile tokenizer.json, and behind a byte 1E a tokenizer_config.json: an error, or a tokenizer
// that works.
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "tokens/tokenizer.h"

namespace {

class TwoFiles : public jemm::FileSource {
 public:
  TwoFiles(std::string_view tokenizer, std::string_view config) : tokenizer_(tokenizer), config_(config) {}
  std::string name() const override { return "memory"; }
  bool contains(std::string_view file) const override {
    return file == "tokenizer.json" || file == "tokenizer_config.json";
  }
  jemm::Blob open(std::string_view file) const override {
    return {std::as_bytes(std::span(file == "tokenizer.json" ? tokenizer_ : config_)), nullptr};
  }

 private:
  std::string_view tokenizer_, config_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = std::min(text.find('\x1E'), size);
  const std::string_view config = text.substr(std::min(cut + 1, size));
  const TwoFiles files(text.substr(0, cut), config.empty() ? R"({"tokenizer_class": "Qwen2Tokenizer"})" : config);
  try {
    const auto tokenizer = jemm::load_tokenizer(files);
    std::vector<std::int32_t> ids;
    const std::string_view input = "abcab <x>e\xCC\x81 the \xE4\xB8\xAD\n\n aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab";
    tokenizer->encode(input, ids);
    if (ids.size() > 2 * input.size()) std::abort();
    for (const std::int32_t id : ids) {
      if (id < 0) std::abort();
    }
  } catch (const jemm::Error& error) {
    if (error.kind() != jemm::ErrorKind::kInput) std::abort();
  }
  return 0;
}

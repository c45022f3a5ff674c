// A line as `jemm decide` writes it: its id and what it says.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "judge/answer_lines.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace jemm;
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  try {
    const std::string key = answer_key_of(line, "A");
    if (key.starts_with('"') && answer_key(shown_answer_id(key)) != key) __builtin_trap();
    const AnswerLine answer = read_answer_line(line, "A");
    if (answer.response.has_value() == answer.error.has_value()) __builtin_trap();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInput) throw;
  }
  return 0;
}

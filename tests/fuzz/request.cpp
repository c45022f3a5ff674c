// Any bytes as a request body: refused with an Error or read in full, never anything else. What is
// read must be the same when written and read again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "contract/answer.h"
#include "contract/json.h"
#include "contract/json_members.h"
#include "contract/python_text.h"
#include "contract/request.h"
#include "image/envelope.h"

namespace jemm {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

/// Runs `step`; an Error of the request kind is a verdict like any other.
template <typename Step>
bool accepts(Step step) {
  try {
    step();
    return true;
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::kRequest && !error.type().empty());
    return false;
  }
}

void read_json(std::string_view bytes) {
  const JsonDocument document = parse_json(decode_json_bytes(bytes));
  const std::string text = compact_json(document.root());
  const JsonDocument again = parse_json(text);
  require(compact_json(again.root()) == text);
  require(python_repr(again.root()) == python_repr(document.root()));
  if (!document.root().is_dict()) return;
  const std::vector<JsonMember> members = json_members(bytes);
  require(members.size() >= document.root().size());
  if (members.empty()) return;
  const JsonDocument last = parse_json(members.back().value);
  require(compact_json(last.root()) == compact_json(*document.root().find(members.back().key)));
}

void answer_question(const Question& question) {
  const std::size_t count = question.candidates.size();
  require(count >= 2 && count <= kMaxCandidates);
  std::vector<float> logits;
  for (std::size_t i = 0; i < count; ++i) logits.push_back(static_cast<float>(i % 3));
  const Answer answer = make_answer(question, calibrate(logits, 0.84));
  require(answer.winner == (count > 2 ? 2 : 1));
  parse_json(answer_json(answer));
}

void read_request(std::string_view body) {
  const Request request = Request::parse(body);
  accepts([&] {
    const std::size_t images = request.image_count();
    for (std::size_t i = 0; i < images; ++i) {
      accepts([&] { decode_envelope(i, request.image(i)); });
    }
  });
  accepts([&] { request.check_questions(); });
  for (std::size_t i = 0; i < request.question_count() && i < 100; ++i) {
    accepts([&] { answer_question(request.question(i)); });
  }
}

}  // namespace
}  // namespace jemm

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  jemm::accepts([&] { jemm::read_json(bytes); });
  jemm::accepts([&] { jemm::read_request(bytes); });
  jemm::accepts([&] { jemm::decode_envelope(0, bytes); });
  return 0;
}

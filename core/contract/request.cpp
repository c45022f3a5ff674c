// A body to its parts, and each question to its prompt.
#include "contract/request.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/labels.h"
#include "contract/candidates.h"
#include "contract/json.h"
#include "contract/python_text.h"

namespace jemm {
namespace {

[[noreturn]] void refuse(const std::string& detail) {
  throw Error::request("ValueError", detail);
}

/// The state as the prompt shows it: text as it is, anything else as compact JSON, stripped.
std::string state_text(const std::optional<JsonValue>& state) {
  if (!state) return "";
  if (state->is_string()) return std::string(strip(state->text()));
  return compact_json(*state);
}

QuestionType question_type(const JsonValue& question) {
  const std::optional<JsonValue> type = question.find("type");
  if (!type) return QuestionType::kChoice;
  if (type->is_string()) {
    for (const QuestionType known :
         {QuestionType::kChoice, QuestionType::kNoul, QuestionType::kScore}) {
      if (type->text() == question_type_name(known)) return known;
    }
  }
  refuse(fmt::format("unsupported question type: {}", python_repr(*type)));
}

std::string render_prompt(std::string_view state, const JsonValue& question,
                          const std::vector<Candidate>& candidates) {
  const std::optional<JsonValue> instructions = question.find("instructions");
  std::string prompt = "State:\n";
  prompt += state;
  prompt += "\n\nQuestion: ";
  if (instructions) prompt += flat(python_str(*instructions));
  prompt += "\n\nCandidates:\n";
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    prompt += kLabels[i];
    prompt += ") ";
    prompt += candidate_text(candidates[i]);
    prompt += '\n';
  }
  prompt += "\nAnswer with exactly one candidate label.";
  return prompt;
}

}  // namespace

std::string_view question_type_name(QuestionType type) {
  switch (type) {
    case QuestionType::kChoice:
      return "choice";
    case QuestionType::kNoul:
      return "noul";
    default:
      return "score";
  }
}

Error too_many_images() {
  return Error::request(
      "ValueError", fmt::format("images must be a list of at most {} base64 strings", kMaxImages));
}

struct Request::Body {
  explicit Body(std::string_view bytes) : document(parse_json(decode_json_bytes(bytes))) {}

  /// Entries of `questions`, so that each is reached at once.
  struct Entry {
    std::string_view id;
    JsonValue value;
  };

  JsonDocument document;
  std::string state;
  std::optional<JsonValue> images;
  std::vector<Entry> questions;
};

Request::Request(std::unique_ptr<const Body> body) : body_(std::move(body)) {}
Request::Request(Request&&) noexcept = default;
Request& Request::operator=(Request&&) noexcept = default;
Request::~Request() = default;

Request Request::parse(std::string_view bytes) {
  if (bytes.empty() || bytes.size() > kMaxBodyBytes) refuse("invalid request size");
  auto body = std::make_unique<Body>(bytes);
  const JsonValue root = body->document.root();
  if (!root.is_dict()) refuse("request body must be an object");
  body->images = root.find("images");
  body->state = state_text(root.find("state"));
  const std::optional<JsonValue> questions = root.find("questions");
  if (questions && questions->is_dict()) {
    for (JsonCursor entry(*questions); !entry.at_end(); entry.advance()) {
      body->questions.push_back({entry.key(), entry.value()});
    }
  }
  return Request(std::move(body));
}

std::string_view Request::state() const {
  return body_->state;
}

std::size_t Request::image_count(std::size_t n_more) const {
  const std::optional<JsonValue>& images = body_->images;
  const bool none = !images || images->is_null();
  if (!none && !images->is_list()) throw too_many_images();
  const std::size_t n = none ? 0 : images->size();
  if (n + n_more > kMaxImages) throw too_many_images();
  return n;
}

std::string_view Request::image(std::size_t i) const {
  JsonCursor entry(*body_->images);
  for (std::size_t skip = i; skip > 0; --skip) entry.advance();
  if (!entry.value().is_string()) refuse(fmt::format("image {} is not a base64 string", i));
  return entry.value().text();
}

void Request::check_questions() const {
  if (body_->questions.empty()) refuse("no questions");
}

std::size_t Request::question_count() const {
  return body_->questions.size();
}

Question Request::question(std::size_t i) const {
  const auto& [id, value] = body_->questions.at(i);
  if (!value.is_dict()) refuse(fmt::format("question {} is not an object", python_repr(id)));
  Question question;
  question.id = id;
  question.type = question_type(value);
  const std::vector<Candidate> candidates = make_candidates(question.type, value);
  question.prompt = render_prompt(body_->state, value, candidates);
  for (const Candidate& candidate : candidates) question.candidates.push_back(candidate.id);
  return question;
}

}  // namespace jemm

// Cases from JSON, by the rules of CPython's json (NaN and lone surrogates included).
#include "judge/case_reader.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>

#include "base/base64.h"
#include "base/error.h"
#include "contract/json.h"
#include "contract/json_members.h"
#include "judge/read_json.h"

namespace jemm {
namespace {

/// A value of a case and the way to it, for messages.
class Field {
 public:
  Field(JsonValue value, std::string where) : value_(value), where_(std::move(where)) {}

  std::optional<Field> find(std::string_view key) const {
    const std::optional<JsonValue> value = value_.find(key);
    if (!value || value->is_null()) return std::nullopt;
    return Field(*value, fmt::format("{}: {}", where_, key));
  }
  Field get(std::string_view key) const {
    std::optional<Field> field = find(key);
    if (!field) refuse(fmt::format("has no {}", key));
    return *field;
  }

  std::string text() const {
    if (!value_.is_string()) refuse("is not a string");
    return std::string(value_.text());
  }
  double number() const {
    if (value_.kind() == JsonKind::kFloat) return value_.number();
    if (value_.kind() != JsonKind::kInt) refuse("is not a number");
    return std::strtod(std::string(value_.text()).c_str(), nullptr);
  }
  template <typename Integer>
  Integer integer() const {
    Integer result = 0;
    if (value_.kind() != JsonKind::kInt) refuse("is not an integer");
    const std::string_view digits = value_.text();
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), result);
    if (read.ec != std::errc()) refuse("is out of range");
    return result;
  }
  bool is_text() const { return value_.is_string(); }
  bool is_number() const {
    return value_.kind() == JsonKind::kFloat || value_.kind() == JsonKind::kInt;
  }

  /// Of what is neither text nor number.
  std::string kind_name() const {
    switch (value_.kind()) {
      case JsonKind::kNull:
        return "(null)";
      case JsonKind::kTrue:
        return "(true)";
      case JsonKind::kFalse:
        return "(false)";
      default:
        return value_.is_list() ? "(list)" : "(object)";
    }
  }

  /// Calls `visit` with each element of a list.
  template <typename Visit>
  void each(const Visit& visit) const {
    if (!value_.is_list()) refuse("is not a list");
    std::size_t i = 0;
    for (JsonCursor entry(value_); !entry.at_end(); entry.advance(), ++i) {
      visit(Field(entry.value(), fmt::format("{}[{}]", where_, i)));
    }
  }
  /// Calls `visit` with each key and value of an object, in order.
  template <typename Visit>
  void each_member(const Visit& visit) const {
    if (!value_.is_dict()) refuse("is not an object");
    for (JsonCursor entry(value_); !entry.at_end(); entry.advance()) {
      visit(std::string(entry.key()),
            Field(entry.value(), fmt::format("{}: {}", where_, entry.key())));
    }
  }

  [[noreturn]] void refuse(std::string_view why) const {
    fail(ErrorKind::kInput, "{} {}", where_, why);
  }

 private:
  JsonValue value_;
  std::string where_;
};

std::optional<std::string> optional_text(const Field& parent, std::string_view key) {
  const std::optional<Field> field = parent.find(key);
  if (!field) return std::nullopt;
  return field->text();
}

std::vector<std::string> texts(const Field& field) {
  std::vector<std::string> result;
  field.each([&](const Field& entry) { result.push_back(entry.text()); });
  return result;
}

ImageRecord read_image(const Field& field) {
  ImageRecord image;
  image.width = field.get("width").integer<std::int64_t>();
  image.height = field.get("height").integer<std::int64_t>();
  image.rgb_sha256 = field.get("rgb_sha256").text();
  if (image.rgb_sha256.empty()) field.get("rgb_sha256").refuse("is empty");
  if (const auto grid = field.find("grid_thw")) {
    std::size_t i = 0;
    grid->each([&](const Field& entry) {
      if (i == image.grid_thw.size()) grid->refuse("has more than three entries");
      image.grid_thw[i] = entry.integer<std::int64_t>();
      if (image.grid_thw[i++] < 1) entry.refuse("is not positive");
    });
    if (i < image.grid_thw.size()) grid->refuse("has less than three entries");
  }
  image.pixel_values_sha256 = optional_text(field, "pixel_values_sha256").value_or("");
  return image;
}

QuestionRecord read_question(const Field& field) {
  QuestionRecord question;
  question.id = field.get("id").text();
  question.type = field.get("type").text();
  question.candidates = texts(field.get("candidates"));
  question.prompt = optional_text(field, "prompt");
  question.position_ids_sha256 = optional_text(field, "position_ids_sha256");
  if (const auto ids = field.find("token_ids")) {
    auto& tokens = question.token_ids.emplace();
    ids->each([&](const Field& id) { tokens.push_back(id.integer<std::int32_t>()); });
  }
  if (const auto logits = field.find("logits")) {
    auto& values = question.logits.emplace();
    logits->each([&](const Field& value) { values.push_back(value.number()); });
  }
  return question;
}

AnswerRecord read_answer(std::string id, const Field& field) {
  AnswerRecord answer;
  answer.question_id = std::move(id);
  field.each_member([&](const std::string& name, const Field& value) {
    answer.fields.push_back(name);
    if (name == "probabilities") {
      value.each_member([&](const std::string& candidate, const Field& p) {
        answer.probabilities.emplace_back(candidate, p.number());
      });
    } else if (value.is_number()) {
      answer.numbers.emplace_back(name, value.number());
    } else {
      answer.texts.emplace_back(name, value.is_text() ? value.text() : value.kind_name());
    }
  });
  return answer;
}

ResponseRecord response_of(const Field& field) {
  ResponseRecord response;
  response.model = optional_text(field, "model").value_or("");
  field.get("answers").each_member([&](std::string id, const Field& answer) {
    response.answers.push_back(read_answer(std::move(id), answer));
  });
  if (const auto usage = field.find("usage")) {
    if (const auto n = usage->find("input_tokens")) {
      response.input_tokens = n->integer<std::int64_t>();
    }
    if (const auto n = usage->find("output_tokens")) {
      response.output_tokens = n->integer<std::int64_t>();
    }
  }
  return response;
}

std::string read_body(std::string_view line, const Field& field) {
  if (const auto raw = optional_text(field, "raw")) return *raw;
  if (const auto packed = optional_text(field, "body_base64")) {
    std::optional<std::string> body = decode_base64(*packed);
    if (!body) field.refuse("has a body_base64 that is no base64");
    return std::move(*body);
  }
  constexpr std::array<std::string_view, 1> kRequest = {"request"};
  std::string body;
  for (const JsonMember& member : json_members(line, kRequest)) body = member.value;
  if (body.empty()) field.refuse("has none of raw, body_base64 and request");
  return body;
}

}  // namespace

std::vector<double> probabilities_of(const AnswerRecord& answer) {
  std::vector<double> values;
  for (const auto& [id, p] : answer.probabilities) values.push_back(p);
  return values;
}

namespace {

CaseRecord read_fields(std::string_view line, const Field& field) {
  CaseRecord record;
  record.id = field.get("id").text();
  if (record.id.empty()) field.get("id").refuse("is empty");
  record.body = read_body(line, field);
  const std::string status = field.get("status").text();
  if (status == "error") {
    const Field error = field.get("error");
    record.error = ErrorRecord{.http = field.get("http").integer<int>(),
                               .type = error.get("error").text(),
                               .detail = error.get("detail").text()};
    return record;
  }
  if (status != "ok") field.get("status").refuse("is neither \"ok\" nor \"error\"");
  if (const auto images = field.find("images")) {
    images->each([&](const Field& image) { record.images.push_back(read_image(image)); });
  }
  if (const auto questions = field.find("questions")) {
    record.has_questions = true;
    questions->each([&](const Field& entry) { record.questions.push_back(read_question(entry)); });
  }
  if (const auto response = field.find("response")) record.response = response_of(*response);
  return record;
}

}  // namespace

CaseRecord read_case(std::string_view line, const std::string& where) {
  return read_json(where, [&] {
    const JsonDocument document = parse_json(decode_json_bytes(line));
    return read_fields(line, Field(document.root(), where));
  });
}

ResponseRecord read_response(std::string_view json, const std::string& where) {
  return read_json(where, [&] {
    const JsonDocument document = parse_json(decode_json_bytes(json));
    return response_of(Field(document.root(), where));
  });
}

std::string read_case_id(std::string_view line, const std::string& where) {
  return read_json(where, [&] {
    constexpr std::array<std::string_view, 1> kId = {"id"};
    std::string id;
    bool found = false;
    for (const JsonMember& member : json_members(line, kId)) {
      id = json_string_value(member.value);
      found = true;
    }
    if (!found) fail(ErrorKind::kInput, "{} has no id", where);
    return id;
  });
}

}  // namespace jemm

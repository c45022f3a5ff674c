// Criteria to candidates, by question type.
#include "contract/candidates.h"

#include "base/error.h"
#include "contract/python_text.h"

namespace jemm {
namespace {

void check_count(std::size_t count) {
  if (count > kMaxCandidates) throw Error::request("ValueError", "UNSUPPORTED: candidate count");
}

/// Text of a criteria entry; an absent one counts as null.
std::string describe(const std::optional<JsonValue>& entry) {
  if (!entry || entry->is_null()) return "";
  if (!entry->is_dict()) return python_str(*entry);
  const std::optional<JsonValue> description = entry->find("description");
  return description ? python_str(*description) : "";
}

bool names_tool(const JsonValue& entry) {
  const std::optional<JsonValue> action = entry.find("action");
  return action && action->find("tool_name").has_value();
}

std::vector<Candidate> choice_candidates(const std::optional<JsonValue>& criteria) {
  if (!criteria || !criteria->is_dict() || criteria->size() < 2) {
    throw Error::request("ValueError",
                         "choice question needs a criteria map with at least two options");
  }
  check_count(criteria->size());
  std::vector<Candidate> candidates;
  for (JsonCursor entry(*criteria); !entry.at_end(); entry.advance()) {
    const JsonValue value = entry.value();
    candidates.push_back({std::string(entry.key()), describe(value), names_tool(value)});
  }
  return candidates;
}

std::vector<Candidate> noul_candidates(const std::optional<JsonValue>& criteria) {
  const auto side = [&](const char* key, const char* id) {
    std::string text = describe(criteria ? criteria->find(key) : std::nullopt);
    return Candidate{id, text.empty() ? id : std::move(text)};
  };
  return {side("true", "yes"), side("false", "no")};
}

std::vector<Candidate> score_candidates(const std::optional<JsonValue>& criteria) {
  if (!criteria || !criteria->is_list() || criteria->size() < 2) {
    throw Error::request("ValueError", "score question needs a list of at least two levels");
  }
  check_count(criteria->size());
  std::vector<Candidate> candidates;
  for (JsonCursor level(*criteria); !level.at_end(); level.advance()) {
    const std::string id = std::to_string(candidates.size());
    std::string text = describe(level.value());
    candidates.push_back({id, text.empty() ? "level " + id : std::move(text)});
  }
  return candidates;
}

}  // namespace

std::vector<Candidate> make_candidates(QuestionType type, const JsonValue& question) {
  const std::optional<JsonValue> criteria = question.find("criteria");
  switch (type) {
    case QuestionType::kChoice:
      return choice_candidates(criteria);
    case QuestionType::kNoul:
      return noul_candidates(criteria);
    default:
      return score_candidates(criteria);
  }
}

std::string candidate_text(const Candidate& candidate) {
  return candidate.is_tool ? tool_line(candidate.description) : flat(candidate.description);
}

}  // namespace jemm

// The candidates of one question, and the line of text that shows each of them.
#pragma once

#include <string>
#include <vector>

#include "contract/json.h"
#include "contract/request.h"

namespace jemm {

/// One option of a question.
struct Candidate {
  std::string id;
  std::string description;
  bool is_tool = false;  ///< its `action` names a tool: the description is read as a tool's JSON
};

/// The candidates of a question, in label order. Throws Error::request("ValueError") when
/// `criteria` does not suit the type, or when there are more than kMaxCandidates.
std::vector<Candidate> make_candidates(QuestionType type, const JsonValue& question);

/// The description as the prompt shows it: flattened, or the one-line form of a tool.
/// Throws what tool_line throws.
std::string candidate_text(const Candidate& candidate);

/// The one-line form of a tool description, or the flattened text when it is not the JSON of a
/// tool. Throws Error::request: TypeError for an unhashable entry of `required`, ValueError for an
/// integer of more than 4300 digits and for nesting over kMaxJsonDepth.
std::string tool_line(std::string_view description);

}  // namespace jemm

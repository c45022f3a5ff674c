// Results as text: the JSON line of decide, and a table for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "evaluate/evaluator.h"

namespace jemm::cli {

/// What a result line says beside the result itself.
struct ResultContext {
  std::string_view id;  ///< JSON text
  std::uint64_t line = 0;
  std::string_view request_sha256;
  std::string_view engine;
  PrefixReuse reuse = PrefixReuse::kOff;
  double threshold = 0;  ///< confidences below it are undecided
};

std::size_t count_undecided(const RequestResult& result, double threshold);

/// One JSON object and a line feed. Adds the time it takes to the result's `write` stage.
std::string result_line(RequestResult& result, const ResultContext& context);

/// The same for reading: a line a question with its confidence and answer.
std::string result_text(const RequestResult& result, const ResultContext& context);

/// {"error", "detail"} as JSON, the detail cut to 200 code points.
std::string error_json(const Error& error);

}  // namespace jemm::cli

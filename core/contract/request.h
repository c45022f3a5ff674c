// A request body as the reference reads it: state, images, questions, and the prompt text of each
// question. Knows no tokens and no tensors. Rules: Python's (CPython 3.12) json, str, repr and
// bool.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace jemm {

inline constexpr std::size_t kMaxBodyBytes = 16'000'000;
inline constexpr std::size_t kMaxImages = 4;
inline constexpr std::size_t kMaxCandidates = 32;

enum class QuestionType { kChoice, kNoul, kScore };
std::string_view question_type_name(QuestionType type);  // "choice", "noul", "score"

/// One question with everything that its answer needs.
struct Question {
  std::string id;  ///< may hold lone surrogates
  QuestionType type = QuestionType::kChoice;
  std::vector<std::string> candidates;  ///< candidate ids, 2 to 32, in label order
  std::string prompt;                   ///< "State:\n...", without chat framing
};

/// What more than 4 images are refused with.
Error too_many_images();

/// A parsed body. The reference's order of evaluation is: parse (size, JSON, object), every image
/// in turn, check_questions, then question 0, 1, ...; the caller keeps it, and the first error
/// counts. Every member throws Error::request with the reference's exception type and detail.
class Request {
 public:
  /// `body`: the raw bytes. Throws for size, encoding, JSON syntax, nesting over 900, not an
  /// object.
  static Request parse(std::string_view body);

  Request(Request&&) noexcept;
  Request& operator=(Request&&) noexcept;
  ~Request();

  /// The state as every prompt shows it.
  std::string_view state() const;
  /// Number of images; throws when `images` is not absent, null or a list of at most 4 entries,
  /// `n_more` that come from elsewhere included.
  std::size_t image_count(std::size_t n_more = 0) const;
  /// Entry i as text (base64 or data URL, undecoded); throws when it is not a string.
  std::string_view image(std::size_t i) const;

  /// Throws "no questions" unless `questions` is a non-empty object.
  void check_questions() const;
  std::size_t question_count() const;
  /// Validates and renders question i. Costs time and memory for this question only.
  Question question(std::size_t i) const;

 private:
  struct Body;
  explicit Request(std::unique_ptr<const Body> body);
  std::unique_ptr<const Body> body_;
};

}  // namespace jemm

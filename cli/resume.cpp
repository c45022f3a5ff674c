#include "resume.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>

#include "base/error.h"
#include "contract/json_members.h"

namespace jemm::cli {
namespace {

using Members = std::map<std::string, std::string_view, std::less<>>;

Members members_of(std::string_view object) {
  Members members;
  for (JsonMember& member : json_members(object)) members[member.key] = member.value;
  return members;
}

std::string_view at(const Members& members, std::string_view key) {
  const auto found = members.find(key);
  if (found == members.end()) fail(ErrorKind::kUsage, "no {}", key);
  return found->second;
}

std::optional<ReuseAudit> audit_of(std::string_view reuse) {
  const Members members = members_of(reuse);
  const auto found = members.find("audit");
  if (found == members.end()) return std::nullopt;
  if (found->second == R"("equal")") return ReuseAudit{};
  return ReuseAudit{.equal_bits = false,
                    .difference = std::strtod(std::string(found->second).c_str(), nullptr)};
}

AnsweredLine parse_line(std::string_view text) {
  const Members members = members_of(text);
  const Members jemm = members_of(at(members, "jemm"));
  AnsweredLine line;
  line.id = at(members, "id");
  line.request_sha256 = json_string_value(at(jemm, "request_sha256"));
  line.engine = json_string_value(at(jemm, "engine"));
  line.failed = members.contains("error");
  if (!line.failed) {
    line.n_questions = json_members(at(members, "answers")).size();
    line.n_undecided = json_elements(at(jemm, "undecided")).size();
    line.audit = audit_of(at(jemm, "reuse"));
  }
  return line;
}

}  // namespace

AnsweredLines::AnsweredLines(const std::string& path) : path_(path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    fail(ErrorKind::kUsage, "--resume: {} is not a regular file", path);
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(ErrorKind::kIo, "cannot open {}: {}", path, std::strerror(errno));
  reader_ =
      std::make_unique<LineReader>(fd, true, path, std::numeric_limits<std::size_t>::max() - 1);
}

bool AnsweredLines::next(AnsweredLine& line) {
  std::string text;
  if (!reader_ || reader_->next(text, Wait::kYes) != ReadStatus::kLine) return false;
  const std::string_view beginning = R"({"id":)";
  if (!reader_->ended() &&
      std::string_view(text).substr(0, beginning.size()) == beginning.substr(0, text.size())) {
    return false;  // a torn result line
  }
  try {
    line = parse_line(text);
  } catch (const Error& error) {
    fail(ErrorKind::kUsage, "{} line {} is no result line ({}); --force starts over", path_,
         n_lines_ + 1, error.what());
  }
  kept_bytes_ = reader_->bytes_consumed();
  ++n_lines_;
  return true;
}

}  // namespace jemm::cli

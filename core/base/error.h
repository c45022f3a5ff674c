// The one exception that library code throws, and how a caller tells its kinds apart.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace jemm {

/// Code points of a refusal's detail that the reference gives.
inline constexpr std::size_t kMaxDetail = 200;

/// What went wrong, by who can mend it. Only cli/ turns a kind into an exit code.
enum class ErrorKind {
  kRequest,  ///< one request is refused, as the reference would; the run goes on
  kUsage,    ///< the command was called wrongly
  kInput,    ///< a file is unusable: checkpoint, golden, fixture
  kIo,       ///< reading or writing failed: missing file, full disk
  kDevice,   ///< the engine or its device failed
};

/// An error with context. `what()` is the detail, in UTF-8 with lone surrogates in their three-byte
/// form; for kRequest it is the reference's `detail`, which is no longer than kMaxDetail.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& what) : std::runtime_error(what), kind_(kind) {}

  /// A refused request. `type` is the name of the reference's exception ("ValueError", ...); of
  /// `detail` the first kMaxDetail code points are kept.
  static Error request(std::string_view type, const std::string& detail);

  ErrorKind kind() const { return kind_; }
  const std::string& type() const { return type_; }  ///< empty unless kRequest

 private:
  ErrorKind kind_;
  std::string type_;
};

/// Memory of an engine's device ran out: Error(kDevice) that leaves the engine usable, so that only
/// what asked for so much has to fail.
class OutOfMemory : public Error {
 public:
  explicit OutOfMemory(const std::string& what) : Error(ErrorKind::kDevice, what) {}
};

/// Throws Error(kind) with a formatted message.
template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace jemm

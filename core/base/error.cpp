// Makes the errors of refused requests.
#include "base/error.h"

#include "base/utf8.h"

namespace jemm {

Error Error::request(std::string_view type, const std::string& detail) {
  Error error(ErrorKind::kRequest, std::string(first_code_points(detail, kMaxDetail)));
  error.type_ = type;
  return error;
}

}  // namespace jemm

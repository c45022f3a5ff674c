// Makes the errors of refused requests.
#include "base/error.h"

namespace jemm {

Error Error::request(std::string_view type, const std::string& detail) {
  Error error(ErrorKind::kRequest, detail);
  error.type_ = type;
  return error;
}

}  // namespace jemm

// What several commands' options may hold.
#pragma once

namespace CLI {
class Validator;
}

namespace jemm::cli {

/// A number from 0 to 1, which NaN is not.
CLI::Validator share_validator();
/// auto, cpu, cuda or cuda:N.
CLI::Validator device_validator();
/// Any text but none.
CLI::Validator not_empty();

}  // namespace jemm::cli

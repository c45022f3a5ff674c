// What several commands' options may hold.
#pragma once

namespace CLI {
class Validator;
}

namespace jemm::cli {

/// A number from `low` to `high`, which NaN is not.
CLI::Validator number_validator(double low, double high);
/// A number from 0 to 1.
CLI::Validator share_validator();
/// auto, cpu, cuda or cuda:N.
CLI::Validator device_validator();
/// Any text but none.
CLI::Validator not_empty();

}  // namespace jemm::cli

// jemm parity --self-test: faults planted one by one, and what the judge says of each.
#pragma once

namespace jemm::cli {

/// Runs the embedded demonstration checkpoint over a few requests, takes that for the reference,
/// and plants faults in copies and, in builds that have them, in the engine. Prints a table.
/// Returns kOk when the judge passes what is sound, and fails each fault on the right stage.
int run_self_test();

}  // namespace jemm::cli

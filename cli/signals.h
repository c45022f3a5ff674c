// Ctrl-C as a request to finish, asked for rather than acted on.
#pragma once

namespace jemm::cli {

/// From now on the first SIGINT sets interrupted(); a second one ends the process. SIGPIPE is
/// ignored: a closed pipe shows as a failed write.
void install_signal_handlers();

bool interrupted();

/// Makes sure that descriptors 0 to 2 are taken, so that no data file becomes stderr by accident.
/// Writing to a standard output that was closed still fails.
void reserve_standard_descriptors();

}  // namespace jemm::cli

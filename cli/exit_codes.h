// The exit status of every command.
#pragma once

namespace jemm::cli {

enum ExitCode : int {
  kOk = 0,
  kGateFailed = 1,  ///< a gate failed: the undecided rate, parity, a regression
  kUsage = 2,
  kSomeFailed = 3,  ///< some requests failed, or --max-errors was reached
  kUnusableInput = kSomeFailed,  ///< parity: inputs unusable or of another checkpoint
  kEngine = 4,      ///< the engine, its device or its checkpoint
  kNoRequests = 5,
  kInputOutput = 6,  ///< unreadable file, full disk
  kInterrupted = 130,
};

}  // namespace jemm::cli

// A pool whose threads cannot all be started.
#include <doctest/doctest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "base/error.h"
#include "cpu/thread_pool.h"

namespace jemm::cpu {
namespace {

constexpr std::size_t kStack = std::size_t{256} << 20;

void set_stack_of_new_threads(std::size_t bytes) {
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, bytes) == 0);
  REQUIRE(pthread_setattr_default_np(&attributes) == 0);
  pthread_attr_destroy(&attributes);
}

/// Leaves address space for a few stacks of kStack, and takes both back at the end.
class FewStacks {
 public:
  FewStacks() {
    pthread_attr_t attributes;
    REQUIRE(pthread_getattr_default_np(&attributes) == 0);
    REQUIRE(pthread_attr_getstacksize(&attributes, &usual_stack_) == 0);
    pthread_attr_destroy(&attributes);
    REQUIRE(getrlimit(RLIMIT_AS, &usual_) == 0);
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    REQUIRE(pages > 0);
    rlimit few = usual_;
    few.rlim_cur = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + 4 * kStack;
    REQUIRE(setrlimit(RLIMIT_AS, &few) == 0);
    set_stack_of_new_threads(kStack);
  }
  ~FewStacks() {
    setrlimit(RLIMIT_AS, &usual_);
    set_stack_of_new_threads(usual_stack_);
  }
  FewStacks(const FewStacks&) = delete;
  FewStacks& operator=(const FewStacks&) = delete;

 private:
  rlimit usual_{};
  std::size_t usual_stack_ = 0;
};

}  // namespace

TEST_CASE("a pool that cannot start all its threads ends those it started and says so") {
  std::string what;
  {
    const FewStacks few;
    try {
      ThreadPool pool(64);
      FAIL_CHECK("64 stacks fit");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kDevice);
      what = error.what();
    }
  }
  CAPTURE(what);
  CHECK(what.find("cannot start thread ") == 0);
  CHECK(what.find("thread 2 of 64") == std::string::npos);  // a helper did run
  CHECK(ThreadPool(3).n_workers() == 3);
}

}  // namespace jemm::cpu

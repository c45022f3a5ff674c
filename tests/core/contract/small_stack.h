// Runs a test's body on a thread with 512 KiB of stack.
#pragma once

#include <doctest/doctest.h>
#include <pthread.h>

#include <functional>

namespace jemm {

inline void on_small_stack(const std::function<void()>& body) {
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, 512 * 1024) == 0);
  const auto run = [](void* argument) -> void* {
    (*static_cast<std::function<void()>*>(argument))();
    return nullptr;
  };
  std::function<void()> copy = body;
  pthread_t thread;
  REQUIRE(pthread_create(&thread, &attributes, run, &copy) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

}  // namespace jemm

// A library that is opened at run time when it is there.
#pragma once

#include <dlfcn.h>

namespace jemm::cli {

/// Stays loaded: drivers do not like to be closed.
class SharedLibrary {
 public:
  explicit SharedLibrary(const char* name) : handle_(::dlopen(name, RTLD_NOW | RTLD_LOCAL)) {}

  bool is_open() const { return handle_ != nullptr; }

  /// Sets `function` to the symbol, or to null. Returns whether it is there.
  template <typename Function>
  bool find(Function& function, const char* symbol) const {
    function = is_open() ? reinterpret_cast<Function>(::dlsym(handle_, symbol)) : nullptr;
    return function != nullptr;
  }

 private:
  void* handle_;
};

}  // namespace jemm::cli

// A library that is opened at run time, and the functions found in it.
#pragma once

#include <dlfcn.h>

#include <string>

namespace epprof {

// `missing` is the first function that the library lacks; empty if all look-ups succeeded.
struct DynamicLibrary {
  const char* path;
  void* handle;
  std::string missing{};

  DynamicLibrary(const char* path, int mode) : path(path), handle(dlopen(path, RTLD_NOW | mode)) {}

  template <typename Function>
  void operator()(const char* name, Function& function) {
    optional(name, function);
    if (!function && missing.empty()) missing = name;
  }
  template <typename Function>
  void optional(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
  }
};

}  // namespace epprof

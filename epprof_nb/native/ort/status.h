// Statuses of ONNX Runtime and C++ exceptions.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

#include "ort/runtime.h"

namespace epprof::ort {

// Throws the message of a status, and releases the status.
inline void check(Status* status) {
  if (!status) return;
  throw std::runtime_error(consume_status(status));
}

// The status of a function that was called without a place for its result, or without an array.
inline Status* null_in(const char* function) {
  return fail((std::string(function) + " was called with a null pointer").c_str());
}

// Runs `body`. An exception becomes a status, because none may reach ONNX Runtime.
template <typename Body>
Status* as_status(Body body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const std::exception& error) {
    return fail(error.what());
  } catch (...) {
    return fail("unknown error in epprof_nb");
  }
}

}  // namespace epprof::ort

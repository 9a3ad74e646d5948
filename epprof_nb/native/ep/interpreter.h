// The functions through which Python runs kernels.
#pragma once

#include <unistd.h>

#include <string>

#include "ep/api.h"
#include "ep/declaration.h"

namespace epprof::ep {

extern ep_interpreter interpreter;

// Calls Python to fill `interpreter` if ONNX Runtime has loaded the library without our Python
// modules. Throws if Python or they are missing.
void connect();

// Runs `work` without the GIL, also before Python is connected.
inline void without_gil(void (*work)(void*), void* data) {
  interpreter.without_gil ? interpreter.without_gil(work, data) : work(data);
}

// Returns the result of a call of `interpreter`. While Python ends, it unwinds every other thread that
// wants the GIL, and the frames of ONNX Runtime would end the process then. Instead, this stops
// such a thread, as Python 3.14 does itself.
template <typename Call>
auto call_python(Call call) {
  struct Guard {
    bool returned = false;
    ~Guard() {
      while (!returned) pause();
    }
  } guard;
  auto result = call();
  guard.returned = true;
  return result;
}

void raise(char* message);  // throws an error message of the interpreter, if there is one

}  // namespace epprof::ep

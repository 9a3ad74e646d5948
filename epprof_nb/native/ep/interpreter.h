// The functions through which Python runs kernels.
#pragma once

#include <string>

#include "ep/api.h"
#include "ep/declaration.h"

namespace epprof::ep {

extern ep_interpreter interpreter;

void raise(char* message);  // throws an error message of the interpreter, if there is one

}  // namespace epprof::ep

// Ranges that XLA writes in the domain of its runtime, TSL. While it compiles it writes one for each
// pass, hundreds for a program, and on threads of its own it runs programs to find the fastest one.
// These get no row: their work belongs to what waits for the compilation.
#pragma once

#include "nvtx/details.h"

namespace epprof::nvtx {

bool is_of_compiler(const Domain* domain, const char* message);
// Whether the calling thread works for a compilation on another one.
bool is_helping_compiler(const Domain* domain);

}  // namespace epprof::nvtx

// Ranges that XLA writes in the domain of its runtime, TSL. While compiling, XLA writes one for
// each pass, hundreds per program, and runs programs on its own threads to find the fastest one.
// These ranges get no row. Their work belongs to the code that waits for the compilation.
#pragma once

#include "nvtx/range_details.h"

namespace epprof::nvtx {

bool is_of_compiler(const Domain* domain, const char* message);
// Whether the calling thread works for a compilation on another thread.
bool is_helping_compiler(const Domain* domain);

}  // namespace epprof::nvtx

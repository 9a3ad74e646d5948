// Ranges that XLA writes in the domain of its runtime, TSL. While it compiles it writes one for each
// pass, hundreds for a program; these get no row.
#pragma once

#include "nvtx/details.h"

namespace epprof::nvtx {

bool is_of_compiler(const Domain* domain, const char* message);

}  // namespace epprof::nvtx

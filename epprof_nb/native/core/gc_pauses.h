// Pauses of Python's garbage collector, as ops of the thread that collected.
#pragma once

#include "core/records.h"

namespace epprof {

struct ThreadState;

// Short pauses of one thread inside one op that follow each other share a row. The stack lock
// protects it.
struct ShortPauses {
  OpRecord row{};  // count 0: none since the last drain
};

// Logs a pause that ends now. `kind` is the payload of the op. Short pauses of young generations
// that follow each other share rows.
void log_gc_pause(uint32_t name, uint32_t kind, int64_t start, bool is_young);

}  // namespace epprof

// Statements of instrumented cells and scopes of functions, on the op stack of each thread.
#pragma once

#include "core/thread_state.h"

namespace epprof {

// The markers in instrumented cells; see `line`, `back`, `enter` and `leave` in _native.pyi.
void begin_statement(uint32_t key);
void return_to_statement(uint32_t key);
void enter_scope(uint32_t key, uint64_t frame);
void leave_scope(uint32_t key, uint64_t frame);

}  // namespace epprof

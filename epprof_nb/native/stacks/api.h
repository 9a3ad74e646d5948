// Python stacks of launches: the C functions that the Python module calls. _native.pyi documents
// them.
#pragma once

#include "core/columns.h"
#include "stacks/walker.h"

#ifdef __cplusplus
extern "C" {
#endif

// The functions of the interpreter, found by name: the stable ABI lacks most of them.
struct epprof_interpreter {
  void* (*this_thread_state)(void);   // PyGILState_GetThisThreadState
  void* (*newest_interpreter)(void);  // PyInterpreterState_Head
  void* main_interpreter;
};

// Prepares the walk. Returns null, or the reason why this interpreter has no stacks.
const char* epprof_stacks_prepare(int minor, const struct epprof_interpreter* interpreter,
                                  const void* runtime);
void epprof_stacks_begin(void);  // of a session, whose stacks are counted from 0
void epprof_stacks_read(int on);  // at launches from now on
void epprof_stacks_stop(void);  // Nothing is read from now on; frees the tables.
// No walk begins or runs afterwards, so the interpreter may free its thread states.
void epprof_stacks_end(void);
// Counts: truncated stacks, and launches without memory for their stack.
epprof_columns* epprof_stacks_drain(uint64_t counts[2]);
void epprof_stacks_set_bound(uint64_t bytes);
size_t epprof_stacks_walk(struct epprof_frame out[EPPROF_MAX_FRAMES]);
// Until the `shown`-th function on the stack of the calling thread returns, the frames of its callers
// are not read again. Call `epprof_stacks_leave` before it does.
void epprof_stacks_stay(uint32_t shown);
void epprof_stacks_leave(void);
uint32_t epprof_stacks_current(void);  // the stack of the calling thread, as at a launch

#ifdef __cplusplus
}
#endif

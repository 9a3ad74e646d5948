// Samples of the host's Python code: the C functions that the Python module calls. _native.pyi
// documents them.
#pragma once

#include "core/columns.h"

#ifdef __cplusplus
extern "C" {
#endif

// To call after epprof_stacks_prepare. `this_thread` is the state of the
// calling thread. Returns null, or the reason why no samples can be taken.
const char* epprof_samples_prepare(void* (*first_thread)(void*), void* interpreter,
                                   const void* code_type, const void* this_thread);
const char* epprof_samples_start(void);  // null, or the reason why no samples are taken
void epprof_samples_stop(void);  // and forgets the samples; waits for the sampling thread
void epprof_samples_end(void);   // for good: the interpreter ends. The samples remain.
// Counts: exact samples, samples of the outer frames only, inconsistent ones, and dropped ones.
epprof_columns* epprof_samples_drain(uint64_t counts[4]);

#ifdef __cplusplus
}
#endif

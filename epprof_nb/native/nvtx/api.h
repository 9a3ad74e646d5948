// NVTX: the C functions that the Python module calls. _native.pyi documents them.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/columns.h"

#ifdef __cplusplus
extern "C" {
#endif

void epprof_nvtx_allow(void);
void epprof_nvtx_record(int on);
// Calls `each` with the path of every library whose copy of NVTX is attached.
void epprof_nvtx_attached(void (*each)(const char* path, void*), void* data);
epprof_columns* epprof_nvtx_details(uint32_t first);
// Number of details, and of payloads with a schema, beyond the bounds of this process.
uint64_t epprof_nvtx_dropped_details(void);
uint64_t epprof_nvtx_dropped_payloads(void);

// Adds 1 or -1 to the number of XLA's compilations in progress; 0 resets it.
void epprof_xla_compiling(int change);

// Records the operators that PyTorch's NVTX observer reports, on this thread and its worker
// threads.
void epprof_operators_record(int on);
void epprof_operators_pause(int on);
void epprof_operators_backward(uint64_t parent);  // parent of operators on other threads; 0: none
uint64_t epprof_operators_seen(void);             // number of messages so far
void epprof_operator_sizes(uint32_t first, void (*each)(const char*, size_t, void*), void* data);

#ifdef __cplusplus
}
#endif

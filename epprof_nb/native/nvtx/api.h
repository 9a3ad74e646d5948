// NVTX: the C functions that the Python module calls. _native.pyi documents them.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/columns.h"

#ifdef __cplusplus
extern "C" {
#endif

void ep_nvtx_allow(void);
void ep_nvtx_record(int on);
// Calls `each` with the path of every library whose copy of NVTX is attached.
void ep_nvtx_attached(void (*each)(const char* path, void*), void* data);
ep_columns* ep_nvtx_details(uint32_t first);
// Of this process: details and payloads with a schema beyond the bounds.
uint64_t ep_nvtx_dropped_details(void);
uint64_t ep_nvtx_dropped_payloads(void);

// One more or one less compilation by XLA is in progress (1, -1), or none (0).
void ep_xla_compiling(int change);

// Records the operators of PyTorch that its NVTX observer names, on this thread and on threads that
// work for it.
void ep_operators_record(int on);
void ep_operators_pause(int on);
void ep_operators_backward(uint64_t parent);  // parent of operators on other threads; 0: none
uint64_t ep_operators_seen(void);             // number of messages so far
void ep_operator_sizes(uint32_t first, void (*each)(const char*, size_t, void*), void* data);

#ifdef __cplusplus
}
#endif

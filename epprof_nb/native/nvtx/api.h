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

#ifdef __cplusplus
}
#endif

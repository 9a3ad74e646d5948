// The drain: what the threads have logged since the last time, as columns.
#pragma once

#include "core/columns.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// `lost`: ops that found no room since the last drain.
ep_columns* ep_drain_ops(int64_t end_ns, int open_too, uint64_t* lost);
ep_columns* ep_drain_launches(uint64_t* lost);

#ifdef __cplusplus
}
#endif

// CUPTI capture and decoding: the C functions that the Python module calls.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/columns.h"

#ifdef __cplusplus
extern "C" {
#endif

// Functions that can fail return null or a malloc'ed message.
char* ep_cupti_load(const char* path, const char* driver_path, uint32_t* version);
char* ep_cupti_set_layout(const void* layout, size_t bytes);
void ep_cupti_configure(size_t buffer_bytes, uint32_t buffers, uint64_t max_records);

struct ep_cupti_started {
  uint32_t subscribed;         // callbacks are ours: one launch record a call
  uint32_t subscribe_result;   // CUPTI's answer to cuptiSubscribe
  uint32_t clock_result;       // ... to registering the clock; 0 also when done before
  uint32_t failed_kinds;       // activity kinds that could not be enabled
};
// kinds: CUpti_ActivityKind numbers. all_calls: log every runtime and driver call.
char* ep_cupti_start(const uint32_t* kinds, size_t count, int callbacks, int all_calls,
                     int external, struct ep_cupti_started* started);
void ep_cupti_stop(void);
size_t ep_cupti_sync(uint64_t (*failed)[2], size_t room);  // (context, result) of failed waits
// Work calls since the start less the activities seen of them: records still to come.
int64_t ep_cupti_pending_records(void);
uint32_t ep_cupti_flush(int forced);
// Whether CUDA has been initialised in this process.
int ep_cuda_started(void);
// Has CUPTI record one harmless call: our clock before, the record's start and end, our clock
// after. False where no record came.
int ep_cupti_probe(int64_t out[4]);
ep_columns* ep_cupti_drain(uint64_t counts[5]);  // lost, unfinished, decoded, dropped by CUPTI, ns
ep_columns* ep_cupti_graph_nodes(void);
void ep_cupti_state(uint64_t out[6]);  // running, buffers out, buffer bytes, completed, captures open, contexts
const char* ep_cupti_callback_name(uint32_t domain, uint32_t cbid);
ep_columns* ep_decode(const void* raw, size_t bytes, const void* layout, size_t layout_bytes,
                      uint64_t counts[5]);  // counts[3]: bytes walked, [4]: ns; null: bad layout

#ifdef __cplusplus
}
#endif

// CUPTI recording and decoding: the C functions that the Python module calls. Those that return
// char* return null or an error message for the caller to free.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/columns.h"

#ifdef __cplusplus
extern "C" {
#endif

char* epprof_cupti_load(const char* path, const char* driver_path, uint32_t* version);
char* epprof_cupti_set_layout(const void* layout, size_t bytes);
void epprof_cupti_configure(size_t buffer_bytes, uint32_t buffers, uint64_t max_records);

struct epprof_cupti_started {
  uint32_t subscribed;        // 1: callbacks write one launch record per call
  uint32_t subscribe_result;  // CUptiResult of cuptiSubscribe
  uint32_t clock_result;      // CUptiResult of registering the clock; 0 if done before
  uint32_t failed_kinds;      // activity kinds that could not be enabled
};
// kinds: CUpti_ActivityKind numbers. all_calls: record every runtime and driver call. external:
// use external correlation ids.
char* epprof_cupti_start(const uint32_t* kinds, size_t count, int callbacks, int all_calls,
                     int external, uint32_t part, struct epprof_cupti_started* started);
void epprof_cupti_stop(void);
// Ends CUPTI in this process if nothing is recorded. The next start starts it anew, also in a forked
// child, where a CUPTI that the parent has started crashes. Only before CUDA has been started.
void epprof_cupti_finalize(void);
// Whether sessions note the streams that calls launch to, and which of them are destroyed, also after
// the sessions. While streams are followed, other profilers cannot subscribe to CUPTI.
void epprof_cupti_follow_streams(int follow);
int epprof_cupti_follows_streams(void);  // whether the streams of the last session are followed
int epprof_cupti_has_callbacks(void);  // whether callbacks write launch records now
// Synchronizes every context used in the session. Returns the number of failures, with the context
// and CUresult of the first `room` of them.
size_t epprof_cupti_sync(uint64_t (*failed)[2], size_t room);
// Name and description of a CUresult. Empty if the driver does not know it.
void epprof_cuda_error(int result, const char** name, const char** text);
// Launch calls since the start minus the launched activities, that is, pending records.
int64_t epprof_cupti_pending_records(void);
uint32_t epprof_cupti_flush(int forced);
// Launches work of our own in the current context, because CUPTI takes long in the first launch.
// Returns whether it did, which adds a record.
int epprof_cupti_first_launch(void);
// True if CUDA is initialised in this process.
int epprof_cuda_started(void);
// Reads the clock of CUPTI's records, some times. out: of the fastest reading, our clock before,
// CUPTI's clock, and our clock after. Returns false if CUPTI refuses.
int epprof_cupti_read_clock(int64_t out[3]);
// counts: lost, unfinished, activities, dropped by CUPTI, decoding time in ns.
epprof_columns* epprof_cupti_drain(uint64_t counts[5]);
epprof_columns* epprof_cupti_graph_nodes(void);
// out: running, buffers in use, bytes per buffer, buffers completed, stream captures, contexts.
void epprof_cupti_state(uint64_t out[6]);
const char* epprof_cupti_callback_name(uint32_t domain, uint32_t cbid);
// Decodes one raw buffer. counts: lost, unfinished, activities, bytes decoded, time in ns. Returns
// null if the layout belongs to another version of the core.
epprof_columns* epprof_decode(const void* raw, size_t bytes, const void* layout, size_t layout_bytes,
                      uint64_t counts[5]);

#ifdef __cplusplus
}
#endif

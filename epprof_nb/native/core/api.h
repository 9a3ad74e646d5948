// What the Python module calls: the native core's surface, in plain C.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/columns.h"
#include "core/drain.h"

#ifdef __cplusplus
extern "C" {
#endif

// Ops and threads.
uint64_t ep_thread_id(void);
void ep_set_recording(int ops, int launches);
int ep_recording_ops(void);
void ep_set_limits(uint32_t op_chunks, uint32_t launch_chunks, uint32_t line_rows,
                   uint32_t line_repeats);
void ep_set_cell_thread(int on);  // the calling thread
uint32_t ep_intern(const char* name, size_t length);
size_t ep_names_from(uint32_t first, void (*each)(const char*, size_t, void*), void* data);
uint64_t ep_push(uint32_t name, uint16_t category, uint32_t meta, const void* owner,
                 uint64_t frame);
int ep_pop(uint64_t op_id);
int ep_pop_owner(const void* owner);
uint64_t ep_top(void);
uint32_t ep_depth(void);
uint32_t ep_add_statements(const int32_t* parents, const uint32_t* names, size_t count);
void ep_line(uint32_t key);
void ep_back(uint32_t key);
void ep_enter(uint32_t key, uint64_t frame);
void ep_leave(uint32_t key, uint64_t frame);
void ep_suspend(uint64_t frame);
void ep_resume(uint64_t frame);
void ep_forget(uint64_t frame);
void ep_log_host_call(uint32_t name, int64_t start, int64_t end, uint64_t correlation);
uint64_t ep_next_correlation(void);
void ep_after_fork_child(void);
void ep_pool_state(uint64_t out[4]);  // op chunks in use, bound; launch chunks in use, bound
char* ep_demangle(const char* name);  // malloc'ed; null where it is no mangled name

// CUPTI. Functions that can fail return null or a malloc'ed message.
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
int64_t ep_cupti_outstanding(void);
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


// ONNX Runtime's observer.
const char* ep_ort_runtime(void);   // version that loaded the observer; empty: none has
uint32_t ep_ort_new_session(void);  // a number for the next session
// Profiles the runs made with an OrtRunOptions; null prefix: no longer. Null or a malloc'ed message.
char* ep_ort_profile_run(void* run_options, const char* file_prefix);
// Keeps one event of a device for the session's own profile. args: keys and values in turn.
// run_op 0: for the session's own profile; else for that of the run with this op.
void ep_ort_keep_event(uint32_t session, uint64_t run_op, const char* name, int64_t start, int64_t duration,
                       int32_t thread, const char* const* args, size_t count);
// Told on the run's thread, without the GIL: the file of a run's profile is open; the run is over,
// and its events (those kept for `run_op`, 0: not recorded) are written next.
typedef void (*ep_ort_file_opened)(void);
typedef void (*ep_ort_file_ending)(uint32_t session, uint64_t run_op);
void ep_ort_on_run_file(ep_ort_file_opened opened, ep_ort_file_ending ending);
// Whether the next run on this thread that is profiled by itself writes a file to tell of.
void ep_ort_expect_run_file(int expected);
int32_t ep_ort_nodes_of_last_run(void);  // -1: not known
uint64_t ep_ort_begin_run(uint32_t session);  // an op id to end it with; 0: not recording
void ep_ort_end_run(uint64_t op_id);
// The C++ type information of OrtRunOptions, and the name pybind11 gives a capsule of such.
const void* ep_ort_run_options_type(const char** name);
ep_columns* ep_ort_details(uint32_t first);

#ifdef __cplusplus
}
#endif

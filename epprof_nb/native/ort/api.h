// The observer of ONNX Runtime: the C functions that the Python module calls.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/columns.h"

#ifdef __cplusplus
extern "C" {
#endif

const char* epprof_ort_runtime(void);   // version of the ONNX Runtime that loaded the observer, or ""
// See ort/observer_ep.h.
uint32_t epprof_ort_new_session(void);
void epprof_ort_begin_session(void);
uint32_t epprof_ort_end_session(void);
// Profiles the runs made with an OrtRunOptions; stops if the prefix is null. Returns null or an
// error message for the caller to free.
char* epprof_ort_profile_run(void* run_options, const char* file_prefix);
// Queues an event for ONNX Runtime's profile of the run with op `run_op`, or of the whole session if
// that is 0: work of a device, or a call that caused it. args: alternating keys and values.
void epprof_ort_add_device_event(uint32_t session, uint64_t run_op, int is_call, const char* name,
                                 int64_t start, int64_t duration, int32_t thread,
                                 const char* const* args, size_t count);
// Sets the callbacks on the profile files of single runs. They run on the thread of the run,
// without the GIL: `opened` once the file is open, `ending` after the run and before its events
// are written. run_op: the run's op; 0 if the run was not recorded.
typedef void (*epprof_ort_file_opened)(void);
typedef void (*epprof_ort_file_ending)(uint32_t session, uint64_t run_op);
void epprof_ort_on_run_file(epprof_ort_file_opened opened, epprof_ort_file_ending ending);
// Sets the function that is called, without the GIL, when a node with one of the names ends in a
// profiled run that is not recorded. Null: none.
typedef void (*epprof_ort_node_ended)(const char* name, size_t length);
void epprof_ort_on_node_end(epprof_ort_node_ended ended, const char* const* names, size_t count);
// Declares whether the next profiled run on this thread writes a file.
void epprof_ort_expect_run_file(int expected);
int32_t epprof_ort_nodes_of_last_run(void);       // -1: unknown
uint64_t epprof_ort_begin_run(uint32_t session);   // the op id for epprof_ort_end_run; 0: not recording
void epprof_ort_end_run(uint64_t op_id);
void epprof_ort_end_refused_run(uint32_t session, int64_t since_ns);
// Observes the next run of a session on this thread; see ort/run_observer.h. out: the op (0: the
// run did not start), launches, their hashes with and without sizes, whether it is profiled, and
// whether it has subgraphs.
void epprof_ort_observe_run(uint32_t session);
void epprof_ort_take_run(uint64_t out[6]);
// The C++ type_info of OrtRunOptions; `name` is pybind11's name for a capsule of it.
const void* epprof_ort_run_options_type(const char** name);
// Statistics of the allocator of an OrtSession; see ort/allocator_statistics.h. Returns lines, or an
// error message if `*failed` is set, for the caller to free.
char* epprof_ort_allocator_statistics(const void* session, const char* memory, int32_t device_type,
                                      uint32_t vendor, int32_t device, int* failed);
epprof_columns* epprof_ort_event_details(uint32_t first);

#ifdef __cplusplus
}
#endif

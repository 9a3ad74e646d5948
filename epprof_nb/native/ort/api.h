// The observer of ONNX Runtime: the C functions that the Python module calls.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/columns.h"

#ifdef __cplusplus
extern "C" {
#endif

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

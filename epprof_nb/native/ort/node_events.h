// Ops of ONNX Runtime's runs and nodes, from the events that its profilers receive: one profiler per
// session and per profiled run.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "ort/abi.h"

namespace epprof::ort {

// whole_session: receives the events of all runs of the session, otherwise of one run. Null if
// the session is 0: another execution provider reports its events.
EpProfiler* make_profiler(uint32_t session, bool whole_session);

// See epprof_ort_on_run_file and epprof_ort_expect_run_file in ort/api.h.
void on_run_file(void (*opened)(), void (*ending)(uint32_t session, uint64_t run_op));
void expect_run_file(bool expected);
// See epprof_ort_on_node_end in ort/api.h.
void on_node_end(void (*ended)(const char*, size_t), std::set<std::string, std::less<>> names);

// Number of node events of the profiled run that ended last on this thread. -1 if none has ended
// since the last call, or if recording began during the run.
int32_t take_nodes_of_last_run();

// Opens the op of a run on this thread; the run's profiler adds events under it. 0: not recording.
uint64_t begin_run(uint32_t session);
void end_run(uint64_t op_id);
uint64_t opened_run(uint32_t session);  // the innermost open op; 0: belongs to another session
// Whether ONNX Runtime profiles this session as a whole now.
bool is_profiled_as_whole(uint32_t session);
// Ends what a call that raised has left open on this thread since its begin, in a session that is
// profiled as a whole. The profiler of a single run does so itself.
void end_refused_run(uint32_t session, int64_t since_ns);
int open_events();  // number of ONNX Runtime's events on this thread, while recording
uint64_t push_run_op(uint32_t session);  // opens only the op; end it with `pop_op`

}  // namespace epprof::ort

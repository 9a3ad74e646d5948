// The profiler that ONNX Runtime tells of its events: one a session, and one a profiled run.
#pragma once

#include "ort/abi.h"

namespace epprof::ort {

// whole_session: its events are of all runs of the session; else of one run.
EpProfiler* make_profiler(uint32_t session, bool whole_session);

// see ep_ort_on_run_file and ep_ort_expect_run_file in ort/api.h.
void on_run_file(void (*opened)(), void (*ending)(uint32_t session, uint64_t run_op));
void expect_run_file(bool expected);

// Nodes told of in the run that was profiled by itself and ended last on this thread; -1: none
// ended since this was last asked, or it was not recorded from its start.
int32_t take_nodes_of_last_run();

// Opens a run's op on this thread; a profiler of the run adds to it. 0: not recording.
uint64_t begin_run(uint32_t session);
void end_run(uint64_t op_id);

}  // namespace epprof::ort

// The profiler that ONNX Runtime tells of its events: one a session, and one a profiled run.
#pragma once

#include "ort_abi.h"

namespace epprof::ort {

// whole_session: its events are of all runs of the session; else of one run.
EpProfiler* make_profiler(uint32_t session, bool whole_session);

}  // namespace epprof::ort

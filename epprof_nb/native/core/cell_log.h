// The log of the cell's thread: the op on top of its stack over time, and its CPU time. For
// recorders without launch callbacks, it has the values that a callback would have read.
#pragma once

#include "core/columns.h"
#include "core/thread_state.h"

namespace epprof {

// The cell's thread while it is being logged. Null: no log.
extern std::atomic<ThreadState*> logged_thread;

void start_cell_log();  // starts a thread that samples the CPU time of the cell's thread
void stop_cell_log();

// Called by the logged thread, under its stack lock.
void log_cell_top(uint64_t op);

// The entries since the last call. The first entry holds the top op at the last call, and the last
// entry the top op now. If records were dropped, the last entry is missing, because the top is
// unknown.
Columns* take_cell_log(uint64_t* thread);

}  // namespace epprof

// The log of the cell's thread: the op on top of its stack over time, and its CPU time. A recorder
// that learns of launches only afterwards finds there what a launch callback would have seen.
#pragma once

#include "core/columns.h"
#include "core/threads.h"

namespace epprof {

// The cell's thread while it is being logged. Null: no log.
extern std::atomic<ThreadState*> logged_thread;

void start_cell_log();  // and samples the CPU time of the cell's thread, on a thread of its own
void stop_cell_log();

// Called by the logged thread, under its stack lock.
void log_cell_top(uint64_t op);

// The entries since the last call. The first and the last one hold the op that was on top at the
// last call and is now. After a loss the last one is missing, because the top is unknown.
Columns* take_cell_log(uint64_t* thread);

}  // namespace epprof

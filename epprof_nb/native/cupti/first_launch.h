// CUPTI's own work at the first launch of a recording, done before the profiled code.
#pragma once

namespace epprof {

// Allocates a byte and creates a stream in the current context, unless it has them. They stay until
// the context ends. Called before records are enabled, so that none describes the allocation.
void prepare_first_launch();

// Sets that byte to zero, without waiting. CUPTI spends about 0.4 ms in the first launch after its
// records were enabled. The launch log marks the call as the profiler's own: its record is dropped.
// Allowed while a stream is captured. Returns whether the memset was launched.
bool make_first_launch();

}  // namespace epprof

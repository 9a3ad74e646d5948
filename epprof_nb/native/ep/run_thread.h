// The thread of a run, on which a stream stays current from one node to the next.
#pragma once

#include <cstdint>

namespace epprof::ep {

// ONNX Runtime reports start and end on the thread of the run, but not the end of some failed runs.
void run_starts_on_thread(uint32_t session);
void run_ends_on_thread();

bool is_thread_of_run(uint32_t session);  // nodes may also run on other threads

}  // namespace epprof::ep

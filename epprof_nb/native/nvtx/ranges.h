// Ranges and marks of NVTX as ops.
#pragma once

#include <atomic>

#include "nvtx/range_details.h"

namespace epprof::nvtx {

extern std::atomic<bool> recording_ranges;  // other than the ranges of operators

// Each thread has a stack of ranges per domain. Returns the number of ranges below; kNoTracking if
// not recording.
int push_range(const Domain* domain, uint32_t name, const EventAttributes* attributes);
// Does the same for a range without a row.
int push_without_row(const Domain* domain);
// Does the same for a message of the default domain, which may be an operator's.
int push_message(const char* message);
// Does the same for an operator's message from any source.
int push_operator_message(const char* message);
// Ends the thread's topmost range of the domain, if there is one.
int pop_range(const Domain* domain);
uint64_t start_range(const Domain* domain, uint32_t name, const EventAttributes* attributes);
void end_range(uint64_t id);  // on any thread
void mark(const Domain* domain, uint32_t name, const EventAttributes* attributes);

}  // namespace epprof::nvtx

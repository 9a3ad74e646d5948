// The launch log: one record per API call that launches, copies, sets memory or waits, with its op.
#pragma once

#include "core/threads.h"

namespace epprof {

extern std::atomic<bool> recording_launches;

void call_begins(ThreadState* t, uint64_t correlation, uint32_t name, int64_t now);
void call_ends(ThreadState* t, uint64_t correlation, uint32_t name, int64_t start, int32_t result,
               uint16_t domain);
void log_host_call(uint32_t name, int64_t start, int64_t end, uint64_t correlation);
uint64_t next_host_correlation();

}  // namespace epprof

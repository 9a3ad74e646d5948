// The launch log: one record, with its op, per API call that launches, copies, sets memory or
// waits.
#pragma once

#include "core/thread_state.h"

namespace epprof {

extern std::atomic<bool> recording_launches;

// Each start of a recorder of calls begins a session. Ends of earlier calls are ignored.
extern std::atomic<uint64_t> call_session;

// Told of the correlation id and the stack of each launch while stacks are recorded, if not null.
extern std::atomic<void (*)(ThreadState*, uint64_t, uint32_t)> launch_observer;

void call_begins(ThreadState* t, uint64_t correlation, uint32_t name, uint16_t domain);
struct CallInterval {
  int64_t start, end;  // 0: the call began before the session
};
CallInterval call_ends(ThreadState* t, uint64_t correlation, uint32_t name, int32_t result);
// The call that the thread is in. Returns false if there is none.
bool call_in_progress(const ThreadState* t, LaunchRecord* record);
// Stack of the call that the calling thread is in, otherwise its current one. `correlation`: of the
// launch; 0: of none.
uint32_t launch_stack(ThreadState* t, uint64_t correlation = 0);
void log_host_call(uint32_t name, int64_t start, int64_t end, uint64_t correlation);
uint64_t next_host_correlation();

}  // namespace epprof

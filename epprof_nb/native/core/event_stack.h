// Events of another profiler as ops, on the op stack of each thread.
#pragma once

#include "core/thread_state.h"

namespace epprof {

struct EventEnd {
  int64_t at_ns;        // when the owner reported the end
  int64_t duration_ns;  // as the owner measured it; -1: until `at_ns`
  uint32_t name;
  uint16_t category;
  uint32_t payload_id;
};
// The final name and category are known at the end of an event; `name` and `category` apply while
// it is open. `tag` is the owner's id of the event and need not be unique. `parent` is used on
// threads where the owner has no open event (pool threads); 0: the open op.
uint64_t push_event(const void* owner, uint32_t tag, uint64_t parent, uint32_t name,
                    uint16_t category);
bool is_event_open(const void* owner, uint32_t tag);
// Returns the op of the event; 0: none was open.
uint64_t end_event(const void* owner, uint32_t tag, const EventEnd& end);
// Ends the events that `owner` left open on this thread since a time, all with the name, category and
// payload of `end`, and returns their number.
int end_events_of(const void* owner, int64_t since_ns, const EventEnd& end);
void log_node_usage(const NodeUsageRecord& record);

}  // namespace epprof

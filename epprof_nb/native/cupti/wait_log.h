// The waits of threads and streams, and the records of events that they are for, from callbacks on
// the calls. CUPTI's own records of them make it watch every call of the driver until the process
// ends: 1.2 us per launch on an H200 host.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/launch_log.h"
#include "cupti/api_calls.h"
#include "cupti/library.h"
#include "gpu/activity_store.h"

namespace epprof {

class WaitLog {
 public:
  void set_limit(uint64_t rows);
  void clear();  // keeps the events, because a later session may wait for them

  // A call that has succeeded. While streams are captured, calls on them make edges of graphs.
  void add(const DriverCall& call, CUcontext context, const void* params, uint32_t correlation,
           const CallInterval& interval, bool some_are_captured);
  void move_to(ActivityStore& store);

 private:
  struct Event {
    uint32_t id;
    uint64_t last_record;  // number of the record; 0: none was seen
    int32_t context;       // of the stream of that record
  };
  struct Wait {
    CallInterval interval;
    uint64_t event_record;
    uint32_t correlation, event;  // event 0: the wait is not for an event
    int32_t context, stream;
    StreamCall call;
  };

  bool has_capacity();
  Event& event(void* handle);

  std::mutex mutex_;
  uint64_t limit_ = UINT64_MAX, lost_ = 0;
  std::unordered_map<void*, Event> events_;
  uint32_t event_count_ = 0;
  uint64_t record_count_ = 0;
  std::vector<EventRecord> records_;
  std::vector<Wait> waits_;
};

}  // namespace epprof

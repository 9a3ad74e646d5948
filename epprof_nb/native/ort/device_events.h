// Device events on their way into ONNX Runtime's own profile: queued by Python, written when the
// profile of the session or of a run ends.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ort/abi.h"

namespace epprof::ort {

struct DeviceEvent {
  EventCategory category;
  std::string name;
  int64_t start_ns;  // CLOCK_MONOTONIC
  int64_t duration_ns;
  int32_t thread_id;
  std::vector<std::pair<std::string, std::string>> args;
};

struct Destination {
  uint32_t session;
  uint64_t run_op;  // 0: the profile of the whole session
  bool operator==(const Destination& other) const {
    return session == other.session && run_op == other.run_op;
  }
};

void add_device_event(Destination to, DeviceEvent event);

// Appends the queued events of a profile to ONNX Runtime's container. `offset_ns` is its elapsed
// profiling time at `start_clock_ns` of our clock. Throws std::runtime_error if the container
// refuses an event.
void flush_device_events(Destination to, int64_t offset_ns, int64_t start_clock_ns,
                         EventsContainer* container);

}  // namespace epprof::ort

// Device work on its way into ONNX Runtime's own profile: put in from Python, taken out when the
// profile of the session, or of one run, ends.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ort/abi.h"

namespace epprof::ort {

struct DeviceEvent {
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

void keep_event(Destination to, DeviceEvent event);

// Hands the events kept for a profile over. ORT's time is `offset_ns` at our clock's `begun_ns`. Throws
// std::runtime_error where ONNX Runtime refuses one.
void hand_over_events(Destination to, int64_t offset_ns, int64_t begun_ns,
                      EventsContainer* container);

}  // namespace epprof::ort

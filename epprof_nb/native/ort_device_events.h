// Device work on its way into ONNX Runtime's own profile: put in from Python, taken out when the
// session's profile ends.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ort_abi.h"

namespace epprof::ort {

struct DeviceEvent {
  std::string name;
  int64_t start_ns;  // CLOCK_MONOTONIC
  int64_t duration_ns;
  int32_t thread_id;
  std::vector<std::pair<std::string, std::string>> args;
};

void keep_event(uint32_t session, DeviceEvent event);

// Hands the session's events over. ORT's time is `offset_ns` at our clock's `begun_ns`. Throws
// std::runtime_error where ONNX Runtime refuses one.
void hand_over_events(uint32_t session, int64_t offset_ns, int64_t begun_ns,
                      EventsContainer* container);

}  // namespace epprof::ort

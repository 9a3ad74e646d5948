// The functions of CUDA's API, by the ids of their callbacks, and which of them are recorded.
#pragma once

#include <atomic>
#include <cstdint>

#include "gpu/launch_signature.h"

namespace epprof {

// CUpti_CallbackDomain.
constexpr uint32_t kDriverDomain = 1, kRuntimeDomain = 2, kResourceDomain = 3;
constexpr uint32_t kCallbackIds = 2048;

// Null if no function of the API has this id.
const char* api_call_name(uint32_t domain, uint32_t cbid);

// True for calls that launch, copy, set memory or wait; that allocate, register or free memory, make
// streams or events, or load code, because they take long or wait for the device; and that begin or
// end a capture. Calls of the runtime and of every library make driver calls with the same
// correlation id.
bool is_recorded_call(const char* name);

// Restricts records of API calls to the calls in the launch log. `on`: records all calls again.
void select_api_records(bool on);

// Calls on events and streams, and queries that succeed.
enum class StreamCall : uint8_t {
  none,
  event_record,
  event_destroy,
  event_synchronize,
  stream_wait_event,
  stream_synchronize,
  context_synchronize
};

struct DriverCall {
  bool begins_capture, ends_capture;
  StreamCall of_stream;
  int8_t event_at, wait_stream_at;  // positions in its parameters; -1: none
  bool is_launch;  // or a copy or memset, which a stream capture may record
  bool is_per_thread;  // its default stream is the thread's
  int16_t stream_at;   // position of the stream in the parameters; -1: unknown
  LaunchParams params;
};

// Callbacks read it while another thread starts or ends a session.
class ApiCalls {
 public:
  // To call before the first callback. The functions do not change afterwards.
  void fill();

  // Id of the name of a recorded call; 0: not recorded in any session so far.
  uint32_t name(uint32_t domain, uint32_t cbid) const {
    bool is_call = domain <= kRuntimeDomain && cbid < kCallbackIds;
    return is_call ? names_[domain][cbid].load(std::memory_order_relaxed) : 0;
  }
  void set_name(uint32_t domain, uint32_t cbid, uint32_t name) {
    names_[domain][cbid].store(name, std::memory_order_relaxed);
  }
  const DriverCall& of_driver(uint32_t cbid) const { return driver_[cbid]; }

 private:
  bool filled_ = false;
  DriverCall driver_[kCallbackIds] = {};
  std::atomic<uint32_t> names_[kRuntimeDomain + 1][kCallbackIds] = {};
};

}  // namespace epprof

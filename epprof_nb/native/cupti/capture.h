// The state of the CUPTI capture, shared by its C functions and its callbacks.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "cupti/buffer_pool.h"
#include "cupti/launch_signature.h"
#include "cupti/library.h"
#include "cupti/record_decoder.h"

namespace epprof {

// CUpti_CallbackDomain.
constexpr uint32_t kDriverDomain = 1, kRuntimeDomain = 2, kResourceDomain = 3;
constexpr uint32_t kCallbackIds = 2048;

struct Capture {
  RecordLayout layout{};
  BufferPool buffers;
  std::mutex mutex;  // guards the store and its decoder; locked per buffer, never in a launch
  ActivityStore store;
  RecordDecoder decoder{layout, store, true};
  uint64_t completed_buffers = 0;
  uint64_t dropped_records = 0;  // by CUPTI, for want of a buffer
  int64_t decode_ns = 0;
  int64_t launch_calls_before = 0;  // of all threads, at the start of the session

  std::atomic<bool> running{false};
  std::atomic<uint64_t> session{0};
  void* subscriber = nullptr;
  bool external = false;  // ops are pushed as external correlation ids
  bool clock_registered = false;
  std::vector<uint32_t> kinds;

  // By [domain][callback id]: the name id of a recorded call; 0: not recorded.
  uint32_t names[3][kCallbackIds] = {};
  // By callback id of the driver: the calls that begin and end a stream capture, and the launches,
  // copies and memsets that a stream capture may record.
  bool capture_begin[kCallbackIds] = {}, capture_end[kCallbackIds] = {};
  bool is_launch[kCallbackIds] = {};
  LaunchParams launch_params[kCallbackIds] = {};
  std::atomic<int64_t> stream_captures{0};  // in progress

  std::mutex contexts_mutex;
  std::vector<CUcontext> contexts;  // seen in this session
};

// Never destroyed: CUPTI calls back until the process ends. The child of a fork gets a new one,
// because CUPTI does not work there and `mutex` may be locked for good: a thread that decodes holds
// it while it calls CUPTI, so a fork must not wait for it.
extern Capture* current_capture;
inline Capture& capture() { return *current_capture; }

// Records of API calls: only of those that the launch log has, too. `on`: of all again.
void select_api_records(bool on);

// Subscribes to the API calls to record. Returns CUPTI's result.
CUptiResult subscribe(Capture& c, bool all_calls);

}  // namespace epprof

// The state of a recording by CUPTI, shared by its C functions and its callbacks.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "cupti/api_calls.h"
#include "cupti/buffer_pool.h"
#include "cupti/callback_gate.h"
#include "cupti/library.h"
#include "cupti/record_decoder.h"
#include "cupti/wait_log.h"

namespace epprof {

struct Recording {
  RecordLayout layout{};
  BufferPool buffers;
  std::mutex mutex;  // guards the store and its decoder; locked per buffer, not in launches
  ActivityStore store;
  RecordDecoder decoder{layout, store, true};
  uint64_t completed_buffers = 0;
  uint64_t dropped_records = 0;  // dropped by CUPTI without a free buffer
  int64_t decode_ns = 0;
  uint32_t part = 0;  // of the session; see `correlation_id`
  int64_t launch_calls_before = 0;  // of all threads, at the start of the session

  std::atomic<bool> running{false};
  void* subscriber = nullptr;
  bool external = false;  // ops are pushed as external correlation ids
  bool clock_registered = false;
  bool cupti_started = false;  // since the process began, or since CUPTI was finalized
  std::vector<uint32_t> kinds;

  CallbackGate gate;
  ApiCalls calls;
  WaitLog waits;
  std::atomic<int64_t> stream_captures{0};  // in progress
  // Whether sessions note the streams of launches, and streams that are destroyed after them.
  std::atomic<bool> follows_streams{false};

  std::mutex contexts_mutex;
  std::vector<CUcontext> contexts;  // seen in this session
};

// Never destroyed, because CUPTI calls back until the process ends. A forked child gets a new one
// with the same layout, because `mutex` may stay locked there: a decoding thread holds it while it
// calls CUPTI, so a fork must not wait for it.
extern Recording* current_recording;
inline Recording& recording() { return *current_recording; }

// CUPTI numbers calls anew after another profiler has finalized it, which may happen while a session
// pauses. The launch log has the number of the session's part in these bits.
constexpr int kPartBits = 40;
inline uint64_t correlation_id(const Recording& c, uint32_t id) {
  return uint64_t(c.part) << kPartBits | id;
}

// Subscribes to the API calls to record. Returns CUPTI's result.
CUptiResult subscribe(Recording& c, bool all_calls);
// Returns when no callback is running, except those on streams, if these are followed.
void unsubscribe(Recording& c);
bool stop_following_streams(Recording& c);  // between sessions; whether they were followed

}  // namespace epprof

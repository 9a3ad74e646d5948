// The streams that recorded calls launched to, and which of them still exist. Experiments launch
// delays to them later, when nothing is recorded.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace epprof {

struct LaunchedStream {
  uint64_t id;
  void* context;    // handles of the driver
  void* stream;     // null: the default stream of the context
  uint64_t thread;  // whose default stream it is; 0: any thread may launch to it
  bool is_new;      // it was created since the recording began
  bool exists;
  std::vector<uint32_t> correlations;  // of graph launches, and of its first other launches
};

// A recording begins. Streams stay known if their destruction would have been seen since the last
// one.
void begin_launched_streams(bool knows_earlier);

struct StreamLaunch {
  void *context, *stream;  // as given to the call
  bool is_per_thread;      // a null stream is the default stream of the thread
  bool is_graph;
  uint32_t correlation;
};
void stream_launched(const StreamLaunch& launch);
void stream_created(void* stream);
// Return when no delay is being launched to them, or after a while: the driver may hold a lock.
void stream_destroyed(void* stream);
void context_destroyed(void* context);

// Called with a context that is about to be destroyed; null: nothing.
extern std::atomic<void (*)(void* context)> forget_context;

std::vector<LaunchedStream> launched_streams();

// A stream that is not destroyed meanwhile.
class UsedStream {
 public:
  explicit UsedStream(uint64_t id);
  ~UsedStream();
  UsedStream(const UsedStream&) = delete;
  UsedStream& operator=(const UsedStream&) = delete;

  explicit operator bool() const { return bool(state_); }  // false: it was destroyed
  void* context() const;
  void* stream() const;
  bool is_of_other_thread() const;

 private:
  struct State;
  friend struct Streams;
  std::shared_ptr<State> state_;
};

}  // namespace epprof

#include "gpu/launched_streams.h"

#include <time.h>

#include <algorithm>

#include "core/clock.h"
#include "core/fork.h"
#include "core/thread_state.h"

namespace epprof {

std::atomic<void (*)(void*)> forget_context{nullptr};

struct UsedStream::State : LaunchedStream {
  std::atomic<int> uses{0};
};

struct Streams {
  using State = UsedStream::State;
  ForkSafeMutex mutex;
  std::vector<std::shared_ptr<State>> all;
  std::vector<void*> created;  // since the recording began
  uint64_t next = 1;
};

namespace {

using State = Streams::State;

constexpr size_t kCorrelations = 4;  // the records of some may have been dropped
// The nodes of a graph have streams of their own in CUPTI's records.
constexpr size_t kGraphCorrelations = 10000;
constexpr size_t kMost = 1024;  // further streams are not known
constexpr int64_t kLimitNs = 100000000;
// CU_STREAM_LEGACY, CU_STREAM_PER_THREAD.
void* const kLegacy = reinterpret_cast<void*>(1);
void* const kPerThread = reinterpret_cast<void*>(2);

Streams streams;
ResetInChild reset([] {
  streams.all.clear();  // CUDA does not work there
  streams.created.clear();
});

uint64_t thread_id() {
  ThreadState* t = this_thread();
  return t ? t->tid : UINT64_MAX;  // it is ending
}

template <typename Which>
void destroyed(Which which) {
  std::vector<std::shared_ptr<State>> gone;
  {
    ForkLockGuard lock(streams.mutex);
    for (const auto& state : streams.all) {
      if (!state->exists || !which(*state)) continue;
      state->exists = false;
      gone.push_back(state);
    }
  }
  int64_t until = epprof_now_ns() + kLimitNs;
  for (const auto& state : gone) {
    while (state->uses && epprof_now_ns() < until) {
      timespec pause{0, 10000};
      nanosleep(&pause, nullptr);
    }
  }
}

}  // namespace

void begin_launched_streams(bool knows_earlier) {
  ForkLockGuard lock(streams.mutex);
  if (!knows_earlier) streams.all.clear();
  streams.created.clear();
  for (const auto& state : streams.all) {
    state->is_new = false;
    state->correlations.clear();
  }
}

void stream_launched(const StreamLaunch& launch) {
  void* stream = launch.stream ? launch.stream : launch.is_per_thread ? kPerThread : nullptr;
  if (stream == kLegacy) stream = nullptr;
  uint64_t thread = stream == kPerThread ? thread_id() : 0;
  ForkLockGuard lock(streams.mutex);
  for (const auto& state : streams.all) {
    if (!state->exists || state->stream != stream || state->context != launch.context ||
        state->thread != thread) {
      continue;
    }
    size_t most = launch.is_graph ? kGraphCorrelations : kCorrelations;
    if (state->correlations.size() < most) state->correlations.push_back(launch.correlation);
    return;
  }
  if (streams.all.size() == kMost) return;
  auto state = std::make_shared<State>();
  static_cast<LaunchedStream&>(*state) = {streams.next++, launch.context, stream, thread, false,
                                          true, {launch.correlation}};
  state->is_new = std::find(streams.created.begin(), streams.created.end(), stream) !=
                  streams.created.end();
  streams.all.push_back(state);
}

void stream_created(void* stream) {
  ForkLockGuard lock(streams.mutex);
  if (streams.created.size() < kMost) streams.created.push_back(stream);
}

void stream_destroyed(void* stream) {
  {
    ForkLockGuard lock(streams.mutex);
    auto& created = streams.created;
    created.erase(std::remove(created.begin(), created.end(), stream), created.end());
  }
  destroyed([stream](const State& state) { return stream && state.stream == stream; });
}

void context_destroyed(void* context) {
  destroyed([context](const State& state) { return state.context == context; });
  if (auto* forget = forget_context.load()) forget(context);
}

std::vector<LaunchedStream> launched_streams() {
  ForkLockGuard lock(streams.mutex);
  std::vector<LaunchedStream> found;
  for (const auto& state : streams.all) found.push_back(*state);
  return found;
}

UsedStream::UsedStream(uint64_t id) {
  ForkLockGuard lock(streams.mutex);
  for (const auto& state : streams.all) {
    if (state->id != id || !state->exists) continue;
    state->uses++;
    state_ = state;
  }
}

UsedStream::~UsedStream() {
  if (state_) state_->uses--;
}

void* UsedStream::context() const { return state_->context; }
void* UsedStream::stream() const { return state_->stream; }
bool UsedStream::is_of_other_thread() const {
  return state_->thread && state_->thread != thread_id();
}

}  // namespace epprof

// What the parts of the stand-in share: its objects, and the state of the process.
#pragma once

#include <stdint.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace fake {

constexpr int kDevices = 2;
constexpr int kInvalidValue = 1, kNoMemory = 2, kNotInitialized = 3, kInvalidDevice = 101;
constexpr int kInvalidContext = 201, kInvalidHandle = 400, kNotFound = 500, kNotReady = 600;
constexpr int kIllegalAddress = 700;
constexpr int kCaptureUnsupported = 900, kCaptureInvalidated = 901, kCaptureUnjoined = 904;
constexpr int kCapturedEvent = 907, kCaptureWrongThread = 908;
constexpr int kGlobalMode = 0, kRelaxedMode = 2;
constexpr size_t kPage = 4096;

struct Stream;

struct Context {
  int device;
  std::set<Stream*> streams;
  std::unique_ptr<Stream> default_stream;
};

// Recorded work, in the order of its calls, which is one in which it may run.
struct Graph {
  std::vector<std::function<void()>> nodes;
};

// A capture: the graph, and streams that have joined it by waiting for its events.
struct Capture {
  Graph* graph = new Graph;
  Stream* origin;
  std::thread::id thread;
  int mode;
  bool invalid = false;
  std::map<Stream*, bool> joined;  // and whether the origin has waited for their last work
};

struct Event {
  Context* context;
  bool recorded = false, done = true;
  bool captured = false;        // reported as such by a test
  Capture* capture = nullptr;   // that recorded it last
  Stream* stream = nullptr;
};

struct Allocation {
  uintptr_t begin;
  size_t bytes, mapped;
  int device;  // -1: pinned host memory
};

// Never destroyed, because streams may work until the process ends.
inline std::mutex& mutex = *new std::mutex;
inline std::condition_variable& changed = *new std::condition_variable;
inline std::map<uintptr_t, Allocation>& allocations = *new std::map<uintptr_t, Allocation>;
inline std::set<Event*>& events = *new std::set<Event*>;
inline std::vector<std::string>& misuses = *new std::vector<std::string>;
inline std::map<std::string, long>& calls = *new std::map<std::string, long>;
inline Context* contexts[kDevices];
inline size_t total_bytes[kDevices] = {size_t(1) << 30, size_t(1) << 30}, used_bytes[kDevices];
inline bool initialized;
inline std::atomic<int> sticky{0}, delay_us{0};
inline std::atomic<bool> allocations_wait{false};
inline auto& faults = *new std::map<std::string, std::pair<int, int>>;
inline std::set<Capture*>& captures = *new std::set<Capture*>;
inline std::set<Graph*>& graphs = *new std::set<Graph*>;
inline std::map<void*, Graph*>& executables = *new std::map<void*, Graph*>;
inline thread_local std::vector<Context*> current;
inline thread_local int interaction_mode = kGlobalMode;

struct Stream {
  Context* context;
  bool capturing = false, closing = false;  // capturing: only reported as such, for a test
  Capture* capture = nullptr;
  size_t pending = 0;
  std::deque<std::function<void()>> work;
  std::thread thread{[this] { serve(); }};

  void serve() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return closing || !work.empty(); });
      if (work.empty()) return;
      auto task = std::move(work.front());
      work.pop_front();
      lock.unlock();
      if (int wait = delay_us) usleep(useconds_t(wait));
      task();
      lock.lock();
      pending--;
      changed.notify_all();
    }
  }
  void add(std::function<void()> task) {
    if (capture) {
      capture->graph->nodes.push_back(std::move(task));
      auto joined = capture->joined.find(this);
      if (joined != capture->joined.end()) joined->second = false;
      return;
    }
    pending++;
    work.push_back(std::move(task));
    changed.notify_all();
  }
};

void misuse(const std::string& text);
int enter(const char* name);  // a call of the driver: counted, and failing where a test wants it to
int unsafe(const char* name);  // likewise, and refused while this thread captures: it might wait
Allocation* allocation_at(uintptr_t address);
void set_open(uintptr_t address, bool open);  // memory of a device, while a stream works on it
Stream* stream_of(Stream* given);  // the default stream for null; null if there is no such stream
// The stream, if the call may use it. `name`: of the call.
int usable(const char* name, Stream* given, Stream** stream);
void wait_for(Context* context, std::unique_lock<std::mutex>& lock);  // for all its streams

}  // namespace fake

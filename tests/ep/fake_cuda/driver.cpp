// A stand-in for NVIDIA's driver library: devices, memory and streams of the process itself.
//
// Streams run their work on threads of their own, in order, and later than the call. Device memory
// is not accessible to the host: only the work of a stream opens it, so that a stray access ends the
// process. Misuse that the real driver might let pass is noted: see fake_misuse.
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
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

namespace {

constexpr int kDevices = 2;
constexpr int kInvalidValue = 1, kNoMemory = 2, kNotInitialized = 3, kInvalidDevice = 101;
constexpr int kInvalidContext = 201, kInvalidHandle = 400, kNotReady = 600, kIllegalAddress = 700;
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
std::mutex& mutex = *new std::mutex;
std::condition_variable& changed = *new std::condition_variable;
std::map<uintptr_t, Allocation>& allocations = *new std::map<uintptr_t, Allocation>;
std::set<Event*>& events = *new std::set<Event*>;
std::vector<std::string>& misuses = *new std::vector<std::string>;
std::map<std::string, long>& calls = *new std::map<std::string, long>;
Context* contexts[kDevices];
size_t total_bytes[kDevices] = {size_t(1) << 30, size_t(1) << 30}, used_bytes[kDevices];
bool initialized;
std::atomic<int> sticky{0}, delay_us{0};
std::map<std::string, std::pair<int, int>>& faults = *new std::map<std::string, std::pair<int, int>>;
std::set<Capture*>& captures = *new std::set<Capture*>;
std::set<Graph*>& graphs = *new std::set<Graph*>;
std::map<void*, Graph*>& executables = *new std::map<void*, Graph*>;
thread_local std::vector<Context*> current;
thread_local int interaction_mode = kGlobalMode;

void misuse(const std::string& text) { misuses.push_back(text); }

// A call of the driver: counted, and failing where a test wants it to.
int enter(const char* name) {
  calls[name]++;
  if (sticky) return sticky;
  auto fault = faults.find(name);
  if (fault != faults.end()) {
    auto& [result, skip] = fault->second;
    if (skip-- <= 0) {
      int failed = result;
      faults.erase(fault);
      return failed;
    }
  }
  return initialized ? 0 : kNotInitialized;
}

Allocation* allocation_at(uintptr_t address) {
  auto after = allocations.upper_bound(address);
  if (after == allocations.begin()) return nullptr;
  Allocation& found = std::prev(after)->second;
  return address < found.begin + found.bytes ? &found : nullptr;
}

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

// Memory of a device is opened while a stream works on it.
std::mutex& opening = *new std::mutex;
std::map<uintptr_t, int>& open_counts = *new std::map<uintptr_t, int>;

void set_open(uintptr_t address, bool open) {
  uintptr_t begin = 0;
  size_t mapped = 0;
  {
    std::lock_guard lock(mutex);
    Allocation* found = allocation_at(address);
    if (!found || found->device < 0) return;
    begin = found->begin;
    mapped = found->mapped;
  }
  std::lock_guard lock(opening);
  int& count = open_counts[begin];
  count += open ? 1 : -1;
  if (count == (open ? 1 : 0)) {
    mprotect(reinterpret_cast<void*>(begin), mapped, open ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
}

Stream* stream_of(Stream* given) {
  if (given) {
    for (Context* context : contexts) {
      if (context && context->streams.count(given)) return given;
    }
    misuse("a stream that was destroyed, or is none");
    return nullptr;
  }
  if (current.empty()) return nullptr;
  Context* context = current.back();
  if (!context->default_stream) {
    context->default_stream = std::make_unique<Stream>();
    context->default_stream->context = context;
  }
  return context->default_stream.get();
}

// What the driver refuses while this thread captures, because it might wait for the device.
int unsafe(const char* name) {
  if (int failed = enter(name)) return failed;
  if (interaction_mode == kRelaxedMode) return 0;
  int result = 0;
  for (Capture* capture : captures) {
    bool own = capture->thread == std::this_thread::get_id() && capture->mode != kRelaxedMode;
    if (own || (interaction_mode == kGlobalMode && capture->mode == kGlobalMode)) {
      capture->invalid = true;
      result = kCaptureUnsupported;
    }
  }
  return result;
}

void wait_for(Context* context, std::unique_lock<std::mutex>& lock) {
  changed.wait(lock, [=] {
    for (Stream* stream : context->streams) {
      if (stream->pending) return false;
    }
    return !context->default_stream || !context->default_stream->pending;
  });
}

// The stream, if the call may use it. `name`: of the call.
int usable(const char* name, Stream* given, Stream** stream) {
  int failed = enter(name);
  if (current.empty()) {
    misuse(std::string(name) + " without a current context");
    return kInvalidContext;
  }
  *stream = stream_of(given);
  if (!*stream) return kInvalidHandle;
  if ((*stream)->context != current.back()) {
    misuse(std::string(name) + " on a stream of another device's context");
  }
  return failed;
}

// Whether a copy stays within an allocation, or is in host memory.
bool is_inside(const char* name, uintptr_t address, size_t bytes, int* device) {
  Allocation* found = allocation_at(address);
  *device = found ? found->device : -1;
  if (!found) {
    // Freed device memory is unmapped; a host address is readable.
    unsigned char resident = 0;
    if (mincore(reinterpret_cast<void*>(address / kPage * kPage), 1, &resident)) {
      misuse(std::string(name) + " uses memory that was freed");
      return false;
    }
    return true;
  }
  if (address + bytes <= found->begin + found->bytes) return true;
  misuse(std::string(name) + " goes beyond the end of an allocation");
  return false;
}

void copy_now(uintptr_t target, uintptr_t source, size_t width, size_t height, size_t target_pitch,
              size_t source_pitch) {
  set_open(target, true);
  set_open(source, true);
  for (size_t i = 0; i < height; i++) {
    memmove(reinterpret_cast<char*>(target) + i * target_pitch,
            reinterpret_cast<char*>(source) + i * source_pitch, width);
  }
  set_open(source, false);
  set_open(target, false);
}

bool is_pinned_or_device(uintptr_t address) { return allocation_at(address); }

int copy(const char* name, uintptr_t target, uintptr_t source, size_t width, size_t height,
         size_t target_pitch, size_t source_pitch, Stream* given) {
  std::unique_lock lock(mutex);
  Stream* stream = nullptr;
  if (int failed = usable(name, given, &stream)) return failed;
  int target_device, source_device;
  if (!is_inside(name, target, (height - 1) * target_pitch + width, &target_device) ||
      !is_inside(name, source, (height - 1) * source_pitch + width, &source_device)) {
    sticky = kIllegalAddress;
    return kIllegalAddress;
  }
  if (target_device < 0 && source_device < 0) misuse(std::string(name) + " within the host");
  if (stream->capturing) return 0;
  if (stream->capture) {  // a replay copies from the same address
    if (!is_pinned_or_device(source) || !is_pinned_or_device(target)) {
      stream->capture->invalid = true;
      return kCaptureUnsupported;
    }
    stream->add([=] { copy_now(target, source, width, height, target_pitch, source_pitch); });
    return 0;
  }
  bool from_pageable = !is_pinned_or_device(source), to_pageable = !is_pinned_or_device(target);
  if (from_pageable) {
    // Staged: the caller may reuse the source at once.
    auto staged = std::make_shared<std::vector<char>>((height - 1) * source_pitch + width);
    memcpy(staged->data(), reinterpret_cast<void*>(source), staged->size());
    stream->add([=] {
      copy_now(target, reinterpret_cast<uintptr_t>(staged->data()), width, height, target_pitch,
               source_pitch);
    });
    return 0;
  }
  stream->add([=] { copy_now(target, source, width, height, target_pitch, source_pitch); });
  if (to_pageable) changed.wait(lock, [&] { return !stream->pending; });
  return 0;
}

void (*previous_handler)(int) = SIG_DFL;

void on_fault(int) {
  static const char text[] = "fake driver: the host has used an address in device memory\n";
  if (write(2, text, sizeof text - 1)) {
  }
  signal(SIGSEGV, previous_handler);  // pytest's shows where Python was
  raise(SIGSEGV);
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
  std::lock_guard lock(mutex);
  initialized = true;
  previous_handler = signal(SIGSEGV, on_fault);
  return enter("cuInit");
}
int cuGetErrorName(int error, const char** name) {
  static const std::map<int, const char*> names = {
      {0, "CUDA_SUCCESS"}, {kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
      {kNoMemory, "CUDA_ERROR_OUT_OF_MEMORY"}, {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT"},
      {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE"},
      {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {kCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
      {kCaptureInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
      {kCaptureUnjoined, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"},
      {kCapturedEvent, "CUDA_ERROR_CAPTURED_EVENT"},
      {kCaptureWrongThread, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"}};
  auto found = names.find(error);
  *name = found == names.end() ? nullptr : found->second;
  return found == names.end() ? kInvalidValue : 0;
}
int cuGetErrorString(int error, const char** text) {
  *text = error == kIllegalAddress ? "an illegal memory access was encountered" : "an error";
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = kDevices;
  std::lock_guard lock(mutex);
  return enter("cuDeviceGetCount");
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal < 0 || ordinal >= kDevices ? kInvalidDevice : 0;
}
int cuDevicePrimaryCtxRetain(Context** context, int device) {
  std::lock_guard lock(mutex);
  if (int failed = enter("cuDevicePrimaryCtxRetain")) return failed;
  if (!contexts[device]) contexts[device] = new Context{device, {}, nullptr};
  *context = contexts[device];
  return 0;
}
int cuCtxPushCurrent_v2(Context* context) {
  std::lock_guard lock(mutex);
  if (int failed = enter("cuCtxPushCurrent")) return failed;
  current.push_back(context);
  return 0;
}
int cuCtxPopCurrent_v2(Context** context) {
  if (current.empty()) return kInvalidContext;
  *context = current.back();
  current.pop_back();
  return 0;
}
int cuCtxSynchronize() {
  std::unique_lock lock(mutex);
  if (int failed = enter("cuCtxSynchronize")) return failed;
  if (current.empty()) return kInvalidContext;
  Context* context = current.back();
  for (Stream* stream : context->streams) {
    if (stream->capturing) misuse("cuCtxSynchronize during a capture");
  }
  for (Capture* capture : captures) {
    if (capture->origin->context != context) continue;
    misuse("cuCtxSynchronize during a capture");
    capture->invalid = true;
    return kCaptureUnsupported;
  }
  wait_for(context, lock);
  return sticky;
}
int cuMemGetInfo_v2(size_t* free, size_t* total) {
  std::lock_guard lock(mutex);
  if (current.empty()) return kInvalidContext;
  int device = current.back()->device;
  *total = total_bytes[device];
  *free = total_bytes[device] - used_bytes[device];
  return 0;
}

int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  std::lock_guard lock(mutex);
  if (int failed = unsafe("cuMemAlloc")) return failed;
  if (current.empty()) return kInvalidContext;
  int device = current.back()->device;
  if (!bytes) return kInvalidValue;
  if (used_bytes[device] + bytes > total_bytes[device]) return kNoMemory;
  size_t mapped = (bytes + kPage - 1) / kPage * kPage;
  void* memory = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return kNoMemory;
  auto begin = reinterpret_cast<uintptr_t>(memory);
  allocations[begin] = {begin, bytes, mapped, device};
  used_bytes[device] += bytes;
  *address = begin;
  return 0;
}
int cuMemFree_v2(uint64_t address) {
  std::unique_lock lock(mutex);
  if (int failed = unsafe("cuMemFree")) return failed;
  auto found = allocations.find(address);
  if (found == allocations.end() || found->second.device < 0) {
    misuse("cuMemFree of memory that was not allocated, or was freed");
    return kInvalidValue;
  }
  // Freeing waits for the device, as the real driver does.
  wait_for(contexts[found->second.device], lock);
  used_bytes[found->second.device] -= found->second.bytes;
  // The addresses stay reserved, so that a use after this is seen.
  mprotect(reinterpret_cast<void*>(found->second.begin), found->second.mapped, PROT_NONE);
  munmap(reinterpret_cast<void*>(found->second.begin), found->second.mapped);
  allocations.erase(found);
  return 0;
}
int cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  std::lock_guard lock(mutex);
  if (int failed = unsafe("cuMemHostAlloc")) return failed;
  size_t mapped = (bytes + kPage - 1) / kPage * kPage;
  void* made = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return kNoMemory;
  auto begin = reinterpret_cast<uintptr_t>(made);
  allocations[begin] = {begin, bytes, mapped, -1};
  *memory = made;
  return 0;
}

int cuMemcpyAsync(uint64_t target, uint64_t source, size_t bytes, Stream* stream) {
  return bytes ? copy("cuMemcpyAsync", target, source, bytes, 1, bytes, bytes, stream) : 0;
}

struct Copy2D {
  size_t source_x, source_y;
  uint32_t source_type;
  const void* source_host;
  uint64_t source_device;
  void* source_array;
  size_t source_pitch, target_x, target_y;
  uint32_t target_type;
  void* target_host;
  uint64_t target_device;
  void* target_array;
  size_t target_pitch, width, height;
};
int cuMemcpy2DAsync_v2(const Copy2D* c, Stream* stream) {
  if (c->source_type != 2 || c->target_type != 2 || c->source_x || c->source_y || c->target_x ||
      c->target_y || c->width > c->source_pitch || c->width > c->target_pitch) {
    return kInvalidValue;
  }
  return copy("cuMemcpy2DAsync", c->target_device, c->source_device, c->width, c->height,
              c->target_pitch, c->source_pitch, stream);
}

int cuStreamCreate(Stream** stream, unsigned) {
  std::lock_guard lock(mutex);
  if (int failed = enter("cuStreamCreate")) return failed;
  if (current.empty()) return kInvalidContext;
  *stream = new Stream;
  (*stream)->context = current.back();
  current.back()->streams.insert(*stream);
  return 0;
}
int cuStreamDestroy_v2(Stream* given) {
  Stream* stream = nullptr;
  {
    std::lock_guard lock(mutex);
    if (int failed = usable("cuStreamDestroy", given, &stream)) return failed;
    if (stream->capture) misuse("cuStreamDestroy of a stream that is being captured");
    stream->context->streams.erase(stream);
    stream->closing = true;
    changed.notify_all();
  }
  stream->thread.join();
  delete stream;
  return 0;
}
int cuStreamSynchronize(Stream* given) {
  std::unique_lock lock(mutex);
  Stream* stream = nullptr;
  if (int failed = usable("cuStreamSynchronize", given, &stream)) return failed;
  if (stream->capturing) {
    misuse("cuStreamSynchronize of a stream that is being captured");
    return kCaptureUnsupported;
  }
  if (stream->capture) {
    stream->capture->invalid = true;
    return kCaptureUnsupported;
  }
  changed.wait(lock, [&] { return !stream->pending; });
  return sticky;
}
int cuStreamQuery(Stream* given) {
  std::lock_guard lock(mutex);
  Stream* stream = nullptr;
  if (int failed = usable("cuStreamQuery", given, &stream)) return failed;
  if (stream->capturing) {
    misuse("cuStreamQuery of a stream that is being captured");
    return kCaptureUnsupported;
  }
  if (stream->capture) {
    stream->capture->invalid = true;
    return kCaptureUnsupported;
  }
  return stream->pending ? kNotReady : 0;
}
int cuStreamWaitEvent(Stream* given, Event* event, unsigned) {
  std::lock_guard lock(mutex);
  Stream* stream = nullptr;
  if (int failed = usable("cuStreamWaitEvent", given, &stream)) return failed;
  if (!events.count(event)) {
    misuse("cuStreamWaitEvent of an event that was destroyed");
    return kInvalidHandle;
  }
  if (event->capture) {
    if (stream->capture && stream->capture != event->capture) return kCapturedEvent;
    if (stream == event->capture->origin) {
      auto joined = event->capture->joined.find(event->stream);
      if (joined != event->capture->joined.end()) joined->second = true;
    } else if (!stream->capture) {
      stream->capture = event->capture;
      event->capture->joined[stream] = false;
    }
    return 0;
  }
  if (stream->capturing || event->captured || !event->recorded) return 0;
  stream->add([=] {
    std::unique_lock waiting(mutex);
    changed.wait(waiting, [&] { return !events.count(event) || event->done; });
  });
  return 0;
}
int cuStreamIsCapturing(Stream* given, int* status) {
  std::lock_guard lock(mutex);
  Stream* stream = stream_of(given);
  *status = stream && stream->capture ? (stream->capture->invalid ? 2 : 1)
                                      : int(stream && stream->capturing);
  return stream ? 0 : kInvalidHandle;
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(interaction_mode, *mode);
  return 0;
}

int cuStreamBeginCapture_v2(Stream* given, int mode) {
  std::lock_guard lock(mutex);
  Stream* stream = nullptr;
  if (int failed = usable("cuStreamBeginCapture", given, &stream)) return failed;
  if (!given || stream->capture) return kCaptureUnsupported;
  stream->capture = new Capture;
  stream->capture->origin = stream;
  stream->capture->thread = std::this_thread::get_id();
  stream->capture->mode = mode;
  captures.insert(stream->capture);
  return 0;
}
int cuStreamEndCapture(Stream* given, Graph** graph) {
  std::lock_guard lock(mutex);
  Stream* stream = nullptr;
  *graph = nullptr;
  int injected = usable("cuStreamEndCapture", given, &stream);
  if (!stream) return injected;
  Capture* capture = stream->capture;
  if (!capture || capture->origin != stream) return kInvalidValue;
  if (capture->mode != kRelaxedMode && capture->thread != std::this_thread::get_id()) {
    return kCaptureWrongThread;
  }
  int result = injected ? injected : capture->invalid ? kCaptureInvalidated : 0;
  for (auto [joined, waited_for] : capture->joined) {
    joined->capture = nullptr;
    if (!waited_for && !result) result = kCaptureUnjoined;
  }
  for (Event* event : events) {
    if (event->capture == capture) event->capture = nullptr;
  }
  stream->capture = nullptr;
  captures.erase(capture);
  if (result) {
    delete capture->graph;
  } else {
    *graph = capture->graph;
    graphs.insert(*graph);
  }
  delete capture;
  return result;
}
int cuStreamGetCaptureInfo_v2(Stream* given, int* status, uint64_t*, Graph** graph, const void**,
                              size_t*) {
  std::lock_guard lock(mutex);
  Stream* stream = stream_of(given);
  if (!stream) return kInvalidHandle;
  *status = !stream->capture ? 0 : stream->capture->invalid ? 2 : 1;
  *graph = stream->capture ? stream->capture->graph : nullptr;
  return 0;
}
int cuGraphGetNodes(Graph* graph, void**, size_t* count) {
  std::lock_guard lock(mutex);
  *count = graph->nodes.size();
  return 0;
}
int cuGraphInstantiateWithFlags(void** executable, Graph* graph, unsigned long long) {
  std::lock_guard lock(mutex);
  if (int failed = enter("cuGraphInstantiate")) return failed;
  if (!graphs.count(graph)) {
    misuse("cuGraphInstantiate of a graph that was destroyed");
    return kInvalidHandle;
  }
  auto* made = new Graph(*graph);
  executables[made] = made;
  *executable = made;
  return 0;
}
int cuGraphLaunch(void* executable, Stream* given) {
  std::lock_guard lock(mutex);
  Stream* stream = nullptr;
  if (int failed = usable("cuGraphLaunch", given, &stream)) return failed;
  auto found = executables.find(executable);
  if (found == executables.end()) {
    misuse("cuGraphLaunch of a graph that was destroyed");
    return kInvalidHandle;
  }
  for (auto& node : found->second->nodes) stream->add(node);
  return 0;
}
int cuGraphExecDestroy(void* executable) {
  std::lock_guard lock(mutex);
  auto found = executables.find(executable);
  if (found == executables.end()) {
    misuse("cuGraphExecDestroy of a graph that was destroyed");
    return kInvalidHandle;
  }
  delete found->second;
  executables.erase(found);
  return 0;
}
int cuGraphDestroy(Graph* graph) {
  std::lock_guard lock(mutex);
  if (!graphs.erase(graph)) {
    misuse("cuGraphDestroy of a graph that was destroyed");
    return kInvalidHandle;
  }
  delete graph;
  return 0;
}

int cuEventCreate(Event** event, unsigned) {
  std::lock_guard lock(mutex);
  if (int failed = enter("cuEventCreate")) return failed;
  if (current.empty()) return kInvalidContext;
  *event = new Event{current.back()};
  events.insert(*event);
  return 0;
}
int cuEventDestroy_v2(Event* event) {
  std::lock_guard lock(mutex);
  if (int failed = enter("cuEventDestroy")) return failed;
  if (!events.erase(event)) {
    misuse("cuEventDestroy of an event that was destroyed");
    return kInvalidHandle;
  }
  changed.notify_all();  // kept in memory: a stream may still have to set it
  return 0;
}
int cuEventRecord(Event* event, Stream* given) {
  std::lock_guard lock(mutex);
  Stream* stream = nullptr;
  if (int failed = usable("cuEventRecord", given, &stream)) return failed;
  if (!events.count(event)) return kInvalidHandle;
  if (event->context != stream->context) {
    misuse("cuEventRecord of an event of another context than its stream");
    return kInvalidHandle;
  }
  event->captured = stream->capturing;
  event->capture = stream->capture;
  event->stream = stream;
  if (stream->capturing || stream->capture) return 0;
  event->recorded = true;
  event->done = false;
  stream->add([=] {
    std::lock_guard finished(mutex);
    event->done = true;
    changed.notify_all();
  });
  return 0;
}
int cuEventQuery(Event* event) {
  std::lock_guard lock(mutex);
  if (int failed = unsafe("cuEventQuery")) return failed;
  if (!events.count(event)) return kInvalidHandle;
  if (event->capture) {
    event->capture->invalid = true;
    return kCapturedEvent;
  }
  if (event->captured) misuse("cuEventQuery of an event of a capture");
  return event->done ? 0 : kNotReady;
}
int cuEventSynchronize(Event* event) {
  std::unique_lock lock(mutex);
  if (int failed = enter("cuEventSynchronize")) return failed;
  if (!events.count(event)) return kInvalidHandle;
  if (event->capture) {
    event->capture->invalid = true;
    return kCapturedEvent;
  }
  if (event->captured) misuse("cuEventSynchronize of an event of a capture");
  changed.wait(lock, [&] { return event->done; });
  return sticky;
}

// -- for tests --------------------------------------------------------------------------------

// Runs `kernel(argument)` on a stream, with the allocations of `pointers` open to it.
int fake_launch(Stream* given, void (*kernel)(void*), void* argument, const uint64_t* pointers,
                size_t count) {
  std::lock_guard lock(mutex);
  Stream* stream = nullptr;
  if (int failed = usable("cuLaunchKernel", given, &stream)) return failed;
  std::vector<uint64_t> used(pointers, pointers + count);
  for (uint64_t pointer : used) {
    Allocation* found = allocation_at(pointer);
    if (!found) {
      misuse("a kernel uses memory that was freed");
      sticky = kIllegalAddress;
      return kIllegalAddress;
    }
    if (found->device >= 0 && found->device != stream->context->device) {
      misuse("a kernel uses memory of another device");
    }
  }
  if (stream->capturing) return 0;
  stream->add([=] {
    for (uint64_t pointer : used) set_open(pointer, true);
    kernel(argument);
    for (uint64_t pointer : used) set_open(pointer, false);
  });
  return 0;
}
// Fails the call after `skip` more of them, once.
void fake_fault(const char* name, int result, int skip) {
  std::lock_guard lock(mutex);
  faults[name] = {result, skip};
}
void fake_set_memory(int device, size_t bytes) {
  std::lock_guard lock(mutex);
  total_bytes[device] = bytes;
}
size_t fake_used(int device) {
  std::lock_guard lock(mutex);
  return used_bytes[device];
}
void fake_set_sticky(int error) { sticky = error; }
void fake_set_delay(int microseconds) { delay_us = microseconds; }
void fake_capture(Stream* stream, int capturing) {
  std::lock_guard lock(mutex);
  stream->capturing = capturing;
}
// Captures in progress, graphs, and executable ones.
void fake_graphs(size_t* in_progress, size_t* made, size_t* executable) {
  std::lock_guard lock(mutex);
  *in_progress = captures.size();
  *made = graphs.size();
  *executable = executables.size();
}
size_t fake_streams(int device) {
  std::lock_guard lock(mutex);
  return contexts[device] ? contexts[device]->streams.size() : 0;
}
long fake_calls(const char* name) {
  std::lock_guard lock(mutex);
  return calls[name];
}
// Copies the descriptions of misuse since the last call into `text`, one a line.
void fake_misuse(char* text, size_t size) {
  std::lock_guard lock(mutex);
  std::string all;
  for (const std::string& line : misuses) all += line + "\n";
  misuses.clear();
  snprintf(text, size, "%s", all.c_str());
}

}  // extern "C"

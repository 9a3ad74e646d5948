// CUPTI in this process: activity buffers into the store, API callbacks into the launch log.

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "core/clock.h"
#include "core/launch_log.h"
#include "core/op_stack.h"
#include "core/string_table.h"
#include "cupti/api.h"
#include "cupti/buffer_pool.h"
#include "cupti/graph_nodes.h"
#include "cupti/library.h"
#include "cupti/record_decoder.h"

namespace epprof {
namespace {

// CUpti_CallbackDomain, CUpti_ApiCallbackSite, CUpti_CallbackIdResource, external correlation.
constexpr uint32_t kDomainDriver = 1, kDomainRuntime = 2, kDomainResource = 3;
constexpr uint32_t kSiteEnter = 0;
constexpr uint32_t kContextDestroyStarting = 2;
constexpr uint32_t kGraphNodeCreated = 13, kGraphNodeCloned = 20;
constexpr uint32_t kExternalCustom0 = 3;
constexpr uint32_t kDriverCalls = 4;  // CUPTI_ACTIVITY_KIND_DRIVER
constexpr uint32_t kDefaultThreadIds = 0, kSystemThreadIds = 1;  // CUpti_ActivityThreadIdType
constexpr uint32_t kCallbackIds = 2048;

char* message(const std::string& text) { return strdup(text.c_str()); }

struct Capture {
  RecordLayout layout{};
  BufferPool buffers;
  std::mutex mutex;  // the store and its decoder: taken a buffer at a time, never in a launch
  ActivityStore store;
  RecordDecoder decoder{layout, store, true};
  uint64_t completed = 0, dropped = 0;
  int64_t decode_ns = 0;
  int64_t launch_calls_before = 0;  // of all threads, at the session's start

  std::atomic<bool> running{false};
  std::atomic<uint64_t> session{0};
  void* subscriber = nullptr;
  bool clock_registered = false;
  std::vector<uint32_t> kinds;
  uint32_t names[3][kCallbackIds] = {};    // [domain][cbid] -> name id, 0: not of interest
  bool capture_begin[kCallbackIds] = {}, capture_end[kCallbackIds] = {};
  bool is_launch[kCallbackIds] = {};  // launches, copies, sets: driver calls that may be captured
  std::atomic<int64_t> captures_open{0};

  std::mutex contexts_mutex;
  std::vector<CUcontext> contexts;
};

Capture& capture() {
  static Capture* c = new Capture;  // CUPTI may call back until the process is gone
  return *c;
}

uint64_t timestamp() { return uint64_t(ep_now_ns()); }

void buffer_requested(uint8_t** buffer, size_t* size, size_t* max_records) {
  Capture& c = capture();
  *buffer = c.buffers.get();
  *size = *buffer ? c.buffers.bytes() : 0;  // none left: CUPTI drops, and counts what it drops
  *max_records = 0;
}

void buffer_completed(CUcontext context, uint32_t stream, uint8_t* buffer, size_t, size_t valid) {
  Capture& c = capture();
  {
    std::lock_guard<std::mutex> lock(c.mutex);
    c.completed++;
    int64_t begun = ep_now_ns();
    c.decoder.forget_names();
    void* record = nullptr;
    while (valid && cupti.ActivityGetNextRecord(buffer, valid, &record) == 0) {
      auto* bytes = static_cast<const unsigned char*>(record);
      uint32_t kind;
      memcpy(&kind, bytes, sizeof kind);
      c.decoder.decode(bytes, kind);
    }
    c.decode_ns += ep_now_ns() - begun;
    size_t dropped = 0;
    if (cupti.ActivityGetNumDroppedRecords(context, stream, &dropped) == 0) c.dropped += dropped;
  }
  if (buffer) c.buffers.put(buffer);
}

void see_context(ThreadState* t, CUcontext context, uint64_t session) {
  t->context = context;
  t->context_session = session;
  Capture& c = capture();
  std::lock_guard<std::mutex> lock(c.contexts_mutex);
  if (std::find(c.contexts.begin(), c.contexts.end(), context) == c.contexts.end()) {
    c.contexts.push_back(context);
  }
}

void on_api_call(Capture& c, uint32_t domain, uint32_t cbid, const unsigned char* data) {
  uint32_t name = domain <= kDomainRuntime && cbid < kCallbackIds ? c.names[domain][cbid] : 0;
  if (!name) return;
  ThreadState* t = this_thread();
  if (!t) return;
  const CallbackFields& f = c.layout.callback.fields;
  auto correlation = uint64_t(f.correlation.get<uint32_t>(data));
  auto* kept = f.data.get<uint64_t*>(data);
  if (f.site.get<uint32_t>(data) == kSiteEnter) {
    auto* context = f.context.get<void*>(data);
    uint64_t session = c.session.load(std::memory_order_relaxed);
    if (context && (context != t->context || t->context_session != session)) {
      see_context(t, context, session);
    }
    int64_t now = ep_now_ns();
    *kept = uint64_t(now);
    call_begins(t, correlation, name, now);
    return;
  }
  auto* result = f.result.get<const int32_t*>(data);
  if (domain == kDomainDriver) {
    // Waiting for a device is refused while a stream captures: `sync` must know.
    if (c.capture_begin[cbid] && result && *result == 0) c.captures_open++;
    if (c.capture_end[cbid] && c.captures_open > 0) c.captures_open--;
    if (c.is_launch[cbid] && !t->node_created && result && *result == 0) {
      t->launch_calls.store(t->launch_calls.load(std::memory_order_relaxed) + 1,
                          std::memory_order_relaxed);
    }
    // Work that becomes a node while no capture was seen to begin: it began before the session.
    if (t->node_created && c.is_launch[cbid] && c.captures_open == 0) c.captures_open = 1;
  }
  call_ends(t, correlation, name, int64_t(*kept), result ? *result : 0,
            domain == kDomainDriver ? kDriver : kRuntime);
}

uint64_t node_id(void* node) {
  uint64_t id = 0;
  return node && cupti.GetGraphNodeId(node, &id) == 0 ? id : 0;
}

void on_resource(Capture& c, uint32_t cbid, const unsigned char* data) {
  const ResourceFields& f = c.layout.resource.fields;
  if (cbid == kContextDestroyStarting) {
    auto* context = f.context.get<void*>(data);
    std::lock_guard<std::mutex> lock(c.contexts_mutex);
    c.contexts.erase(std::remove(c.contexts.begin(), c.contexts.end(), context),
                     c.contexts.end());
    return;
  }
  auto* graph = f.descriptor.get<const unsigned char*>(data);
  if (!graph) return;
  const GraphFields& g = c.layout.graph.fields;
  ThreadState* t = this_thread();
  uint64_t node = node_id(g.node.get<void*>(graph));
  if (!node) return;
  if (cbid == kGraphNodeCreated) {
    if (t) t->node_created = true;
    graph_node_created(node, top_op());
  } else if (cbid == kGraphNodeCloned) {
    graph_node_cloned(node, node_id(g.original_node.get<void*>(graph)));
  }
}

void on_callback(void*, uint32_t domain, uint32_t cbid, const void* data) {
  Capture& c = capture();
  if (!recording_launches.load(std::memory_order_relaxed)) return;
  auto* bytes = static_cast<const unsigned char*>(data);
  if (domain == kDomainResource) {
    on_resource(c, cbid, bytes);
  } else {
    on_api_call(c, domain, cbid, bytes);
  }
}

bool starts_with(const char* name, const char* prefix) {
  return strncmp(name, prefix, strlen(prefix)) == 0;
}

// Driver calls that launch, copy, set or wait; that allocate or load code, because these wait for
// the device too; and that open or close a capture. The runtime's calls, and every library's, pass
// through them with the same correlation id.
bool is_recorded(const char* name) {
  for (const char* prefix :
       {"cuLaunch", "cuGraphLaunch", "cuMemcpy", "cuMemset", "cuMemPrefetch", "cuMemAlloc",
        "cuMemFree", "cuMemHostAlloc", "cuModuleLoad", "cuModuleUnload", "cuLibraryLoad",
        "cuGraphInstantiate", "cuStreamBeginCapture", "cuStreamEndCapture",
        "cuEventQuery", "cuStreamQuery"}) {  // a query that finds its event done leaves a record
    if (starts_with(name, prefix)) return true;
  }
  return strstr(name, "Synchronize") != nullptr;
}

void choose_callbacks(Capture& c, bool all_calls) {
  for (uint32_t domain : {kDomainDriver, kDomainRuntime}) {
    for (uint32_t cbid = 1; cbid < kCallbackIds; cbid++) {
      const char* name = nullptr;
      c.names[domain][cbid] = 0;
      if (cupti.GetCallbackName(domain, cbid, &name) != 0 || !name) continue;
      if (domain == kDomainDriver) {
        c.capture_begin[cbid] = starts_with(name, "cuStreamBeginCapture");
        c.capture_end[cbid] = starts_with(name, "cuStreamEndCapture");
        c.is_launch[cbid] = starts_with(name, "cuLaunch") || starts_with(name, "cuMemcpy") ||
                            starts_with(name, "cuMemset");
      }
      if (!all_calls && (domain != kDomainDriver || !is_recorded(name))) continue;
      if (cupti.EnableCallback(1, c.subscriber, domain, cbid) != 0) continue;
      c.names[domain][cbid] = intern(name);
    }
  }
  for (uint32_t cbid : {kContextDestroyStarting, kGraphNodeCreated, kGraphNodeCloned}) {
    cupti.EnableCallback(1, c.subscriber, kDomainResource, cbid);
  }
}

void push_external(uint64_t op) {
  cupti.ActivityPushExternalCorrelationId(kExternalCustom0, op);
}

void pop_external() {
  uint64_t last;
  cupti.ActivityPopExternalCorrelationId(kExternalCustom0, &last);
}

}  // namespace
}  // namespace epprof

using namespace epprof;

extern "C" {

char* ep_cupti_load(const char* path, const char* driver_path, uint32_t* version) {
  std::string failed = load_cupti(path, driver_path);
  if (!failed.empty()) return message(failed);
  *version = 0;
  CUptiResult result = cupti.GetVersion(version);
  if (result != 0 || *version == 0) {
    return message("cuptiGetVersion failed: " + cupti_error(result));
  }
  return nullptr;
}

char* ep_cupti_set_layout(const void* layout, size_t bytes) {
  Capture& c = capture();
  if (!c.layout.assign(layout, bytes)) {
    return message("the layout has " + std::to_string(bytes) + " bytes, the native core expects " +
                   std::to_string(sizeof(RecordLayout)) + ": rebuild the package");
  }
  return nullptr;
}

void ep_cupti_configure(size_t buffer_bytes, uint32_t buffers, uint64_t max_records) {
  Capture& c = capture();
  c.buffers.configure(buffer_bytes, buffers);
  std::lock_guard<std::mutex> lock(c.mutex);
  c.store.set_record_limit(max_records);
}

char* ep_cupti_start(const uint32_t* kinds, size_t count, int callbacks, int all_calls,
                     int external, struct ep_cupti_started* started) {
  Capture& c = capture();
  memset(started, 0, sizeof *started);
  // Another profiler may have put its own buffer callbacks in place since the last session.
  CUptiResult result = cupti.ActivityRegisterCallbacks(buffer_requested, buffer_completed);
  if (result != 0) {
    return message("cuptiActivityRegisterCallbacks failed: " + cupti_error(result));
  }
  if (!c.clock_registered) {
    // Once a process: registering it again corrupts the first records of the next session.
    started->clock_result = cupti.ActivityRegisterTimestampCallback(timestamp);
    c.clock_registered = started->clock_result == 0;
  }
  c.captures_open = 0;
  c.session++;
  c.launch_calls_before = 0;
  c.store.reset_own_launch_count();
  c.launch_calls_before = ep_cupti_pending_records();
  {
    std::lock_guard<std::mutex> lock(c.contexts_mutex);
    c.contexts.clear();
  }
  if (callbacks) {
    started->subscribe_result = cupti.Subscribe(&c.subscriber, on_callback, nullptr);
    started->subscribed = started->subscribe_result == 0;
    if (started->subscribed) choose_callbacks(c, all_calls != 0);
    else c.subscriber = nullptr;
  }
  for (size_t i = 0; i < count; i++) {
    if (cupti.ActivityEnable(kinds[i]) == 0) {
      c.kinds.push_back(kinds[i]);
    } else {
      started->failed_kinds++;
    }
  }
  CUcontext current = nullptr;
  if (external && cupti.CtxGetCurrent(&current) == 0 && current) {
    // No callback will tell which contexts work: wait at least for this one.
    std::lock_guard<std::mutex> lock(c.contexts_mutex);
    c.contexts.push_back(current);
  }
  if (external) {
    cupti.SetThreadIdType(kSystemThreadIds);  // API records then carry the ids of gettid
    on_push = push_external;
    on_pop = pop_external;
  }
  c.running = true;
  return nullptr;
}

void ep_cupti_stop(void) {
  Capture& c = capture();
  if (on_push) cupti.SetThreadIdType(kDefaultThreadIds);
  on_push = nullptr;
  on_pop = nullptr;
  for (uint32_t kind : c.kinds) cupti.ActivityDisable(kind);
  c.kinds.clear();
  // Nothing stays subscribed between sessions: it would cost other profilers their records.
  if (c.subscriber) cupti.Unsubscribe(c.subscriber);
  c.subscriber = nullptr;
  cupti.ActivityFlushAll(1);
  c.running = false;
}

size_t ep_cupti_sync(uint64_t (*failed)[2], size_t room) {
  Capture& c = capture();
  if (c.captures_open > 0) return 0;  // waiting would break the user's capture
  ThreadState* t = this_thread();
  std::vector<CUcontext> contexts;
  {
    std::lock_guard<std::mutex> lock(c.contexts_mutex);
    contexts = c.contexts;
  }
  size_t failures = 0;
  if (t) t->in_profiler = true;
  for (CUcontext context : contexts) {
    int result = cupti.CtxPushCurrent(context);
    if (result == 0) {
      result = cupti.CtxSynchronize();
      CUcontext popped;
      cupti.CtxPopCurrent(&popped);
    }
    if (result != 0 && failures < room) {
      failed[failures][0] = reinterpret_cast<uintptr_t>(context);
      failed[failures][1] = uint64_t(result);
      failures++;
    }
  }
  if (t) t->in_profiler = false;
  return failures;
}

int64_t ep_cupti_pending_records(void) {
  Capture& c = capture();
  int64_t calls = 0;
  for_each_thread(
      [](ThreadState* t, void* sum) {
        *static_cast<int64_t*>(sum) += int64_t(t->launch_calls.load(std::memory_order_relaxed));
      },
      &calls);
  std::lock_guard<std::mutex> lock(c.mutex);
  return calls + ended_launch_calls() - c.launch_calls_before - c.store.own_launch_count();
}

uint32_t ep_cupti_flush(int forced) { return cupti.ActivityFlushAll(forced ? 1 : 0); }

int ep_cuda_started(void) {
  CUcontext current;
  return cupti.CtxGetCurrent(&current) == 0;
}

int ep_cupti_probe(int64_t out[4]) {
  Capture& c = capture();
  bool on = std::find(c.kinds.begin(), c.kinds.end(), kDriverCalls) != c.kinds.end();
  if (!on && cupti.ActivityEnable(kDriverCalls) != 0) return 0;
  // Asking for the current context waits for nothing and is allowed during a stream capture. The
  // first call pays for what was just turned on: the tightest of several counts.
  constexpr int kTries = 8;
  int64_t before[kTries], after[kTries];
  for (int i = 0; i < kTries; i++) {
    CUcontext current;
    before[i] = ep_now_ns();
    cupti.CtxGetCurrent(&current);
    after[i] = ep_now_ns();
  }
  if (!on) cupti.ActivityDisable(kDriverCalls);
  cupti.ActivityFlushAll(1);
  int64_t tightest = INT64_MAX;
  std::lock_guard<std::mutex> lock(c.mutex);
  for (int i = kTries; i-- > 0;) {
    ApiCall call;
    if (!c.store.pop_last_api_call(&call)) break;
    if (after[i] - before[i] >= tightest) continue;
    tightest = after[i] - before[i];
    out[0] = before[i];
    out[1] = call.start;
    out[2] = call.end;
    out[3] = after[i];
  }
  return tightest != INT64_MAX;
}

ep_columns* ep_cupti_drain(uint64_t counts[5]) {
  Capture& c = capture();
  auto* columns = new Columns;
  std::lock_guard<std::mutex> lock(c.mutex);
  c.store.move_to_columns(columns, counts);
  counts[3] = c.dropped;
  counts[4] = uint64_t(c.decode_ns);
  c.dropped = 0;
  c.decode_ns = 0;
  return columns;
}

ep_columns* ep_cupti_graph_nodes(void) { return take_graph_nodes(); }

void ep_cupti_state(uint64_t out[6]) {
  Capture& c = capture();
  out[0] = c.running;
  out[1] = c.buffers.out();
  out[2] = c.buffers.bytes();
  out[3] = c.completed;
  out[4] = uint64_t(c.captures_open.load());
  std::lock_guard<std::mutex> lock(c.contexts_mutex);
  out[5] = c.contexts.size();
}

const char* ep_cupti_callback_name(uint32_t domain, uint32_t cbid) {
  const char* name = nullptr;
  if (!cupti.GetCallbackName || cupti.GetCallbackName(domain, cbid, &name) != 0) return nullptr;
  return name;
}

ep_columns* ep_decode(const void* raw, size_t bytes, const void* layout, size_t layout_bytes,
                      uint64_t counts[5]) {
  RecordLayout l;
  if (!l.assign(layout, layout_bytes)) return nullptr;
  ActivityStore store;
  int64_t begun = ep_now_ns();
  counts[3] = decode_buffer(static_cast<const unsigned char*>(raw), bytes, l, store);
  counts[4] = uint64_t(ep_now_ns() - begun);
  auto* columns = new Columns;
  store.move_to_columns(columns, counts);
  return columns;
}

}  // extern "C"

// CUPTI's callbacks on API calls and resources: they write the launch log, follow stream captures
// and contexts, and note which op created each graph node.

#include <string.h>

#include <algorithm>

#include "core/clock.h"
#include "core/launch_log.h"
#include "core/op_stack.h"
#include "core/string_table.h"
#include "cupti/capture.h"
#include "cupti/graph_nodes.h"

namespace epprof {
namespace {

// CUpti_ApiCallbackSite and CUpti_CallbackIdResource.
constexpr uint32_t kSiteEnter = 0;
constexpr uint32_t kContextDestroyStarting = 2;
constexpr uint32_t kGraphDestroyStarting = 10;
constexpr uint32_t kGraphNodeCreated = 13, kGraphNodeCloned = 20;
constexpr uint32_t kGraphExecCreateStarting = 17, kGraphExecCreated = 18;

void register_context(ThreadState* t, CUcontext context, uint64_t session) {
  t->context = context;
  t->context_session = session;
  Capture& c = capture();
  std::lock_guard<std::mutex> lock(c.contexts_mutex);
  if (std::find(c.contexts.begin(), c.contexts.end(), context) == c.contexts.end()) {
    c.contexts.push_back(context);
  }
}

void on_api_call(Capture& c, uint32_t domain, uint32_t cbid, const unsigned char* data) {
  uint32_t name = domain <= kRuntimeDomain && cbid < kCallbackIds ? c.names[domain][cbid] : 0;
  if (!name) return;
  ThreadState* t = this_thread();
  if (!t) return;
  const CallbackFields& f = c.layout.callback.fields;
  auto correlation = uint64_t(f.correlation.get<uint32_t>(data));
  auto* start = f.data.get<uint64_t*>(data);  // CUPTI keeps it from the entry to the exit
  if (f.site.get<uint32_t>(data) == kSiteEnter) {
    auto* context = f.context.get<void*>(data);
    uint64_t session = c.session.load(std::memory_order_relaxed);
    if (context && (context != t->context || t->context_session != session)) {
      register_context(t, context, session);
    }
    int64_t now = ep_now_ns();
    *start = uint64_t(now);
    call_begins(t, correlation, name, now);
    return;
  }
  auto* result = f.result.get<const int32_t*>(data);
  if (domain == kDriverDomain) {
    // `ep_cupti_sync` needs the count: synchronizing is an error while a stream is captured.
    if (c.capture_begin[cbid] && result && *result == 0) c.stream_captures++;
    if (c.capture_end[cbid] && c.stream_captures > 0) c.stream_captures--;
    if (c.is_launch[cbid] && !t->node_created && result && *result == 0) {
      t->launch_calls.store(t->launch_calls.load(std::memory_order_relaxed) + 1,
                            std::memory_order_relaxed);
      LaunchSignature launch =
          launch_signature(c.launch_params[cbid], name, f.params.get<void*>(data));
      t->launch_hash = append_launch(t->launch_hash, launch.exact);
      t->function_hash = append_launch(t->function_hash, launch.function);
    }
    // A launch that creates a graph node belongs to a capture. If none is known, it began before
    // the session.
    if (t->node_created && c.is_launch[cbid] && c.stream_captures == 0) c.stream_captures = 1;
  }
  call_ends(t, correlation, name, int64_t(*start), result ? *result : 0,
            domain == kDriverDomain ? kDriver : kRuntime);
}

uint64_t node_id(void* node) {
  uint64_t id = 0;
  return node && cupti.GetGraphNodeId(node, &id) == 0 ? id : 0;
}

uint64_t graph_id(void* graph) {
  uint32_t id = 0;
  return graph && cupti.GetGraphId && cupti.GetGraphId(graph, &id) == 0 ? id : 0;
}

uint64_t executable_id(void* executable) {
  uint32_t id = 0;
  return executable && cupti.GetGraphExecId && cupti.GetGraphExecId(executable, &id) == 0 ? id : 0;
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
  switch (cbid) {
    case kGraphDestroyStarting: return graph_destroyed(graph_id(g.graph.get<void*>(graph)));
    case kGraphExecCreateStarting: return instantiation_begins();
    case kGraphExecCreated:
      return instantiation_ends(executable_id(g.graph_exec.get<void*>(graph)));
  }
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
  if (domain == kResourceDomain) {
    on_resource(c, cbid, bytes);
  } else {
    on_api_call(c, domain, cbid, bytes);
  }
}

bool starts_with(const char* name, const char* prefix) {
  return strncmp(name, prefix, strlen(prefix)) == 0;
}

// True for calls that launch, copy, set memory or wait; that allocate or load code, because they
// wait for the device; and that begin or end a capture. The calls of the runtime and of every
// library pass through those of the driver, with the same correlation id.
bool is_recorded_call(const char* name) {
  size_t domain = starts_with(name, "cuda") ? 4 : 2;
  for (const char* prefix :
       {"Launch", "GraphLaunch", "Memcpy", "Memset", "MemPrefetch", "MemAlloc", "Malloc", "MemFree",
        "Free", "MemHostAlloc", "HostAlloc", "ModuleLoad", "ModuleUnload", "LibraryLoad",
        "GraphInstantiate", "StreamBeginCapture", "StreamEndCapture",
        "EventQuery", "StreamQuery"}) {  // CUPTI records a query that finds its event done
    if (strlen(name) > domain && starts_with(name + domain, prefix)) return true;
  }
  return strstr(name, "Synchronize") != nullptr;
}

void enable_callbacks(Capture& c, bool all_calls) {
  for (uint32_t domain : {kDriverDomain, kRuntimeDomain}) {
    for (uint32_t cbid = 1; cbid < kCallbackIds; cbid++) {
      const char* name = nullptr;
      c.names[domain][cbid] = 0;
      if (cupti.GetCallbackName(domain, cbid, &name) != 0 || !name) continue;
      if (domain == kDriverDomain) {
        c.capture_begin[cbid] = starts_with(name, "cuStreamBeginCapture");
        c.capture_end[cbid] = starts_with(name, "cuStreamEndCapture");
        c.is_launch[cbid] = starts_with(name, "cuLaunch") || starts_with(name, "cuMemcpy") ||
                            starts_with(name, "cuMemset");
        c.launch_params[cbid] = launch_params(name);
      }
      if (!all_calls && (domain != kDriverDomain || !is_recorded_call(name))) continue;
      if (cupti.EnableCallback(1, c.subscriber, domain, cbid) != 0) continue;
      c.names[domain][cbid] = intern(name);
    }
  }
  for (uint32_t cbid : {kContextDestroyStarting, kGraphNodeCreated, kGraphNodeCloned,
                        kGraphDestroyStarting, kGraphExecCreateStarting, kGraphExecCreated}) {
    cupti.EnableCallback(1, c.subscriber, kResourceDomain, cbid);
  }
}

}  // namespace

void select_api_records(bool on) {
  for (uint32_t domain : {kDriverDomain, kRuntimeDomain}) {
    auto* enable = domain == kDriverDomain ? cupti.ActivityEnableDriverApi
                                           : cupti.ActivityEnableRuntimeApi;
    if (!enable) continue;
    for (uint32_t cbid = 1; cbid < kCallbackIds; cbid++) {
      const char* name = nullptr;
      if (cupti.GetCallbackName(domain, cbid, &name) != 0 || !name) continue;
      // The probe of the clock calls cuCtxGetCurrent.
      bool needed = is_recorded_call(name) || strcmp(name, "cuCtxGetCurrent") == 0;
      if (!needed) enable(cbid, on);
    }
  }
}

CUptiResult subscribe(Capture& c, bool all_calls) {
  CUptiResult result = cupti.Subscribe(&c.subscriber, on_callback, nullptr);
  if (result == 0) {
    enable_callbacks(c, all_calls);
  } else {
    c.subscriber = nullptr;
  }
  return result;
}

}  // namespace epprof

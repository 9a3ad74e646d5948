// CUPTI's callbacks on API calls and resources: they write the launch log, follow stream captures
// and contexts, and note which op created each graph node.

#include <string.h>

#include <algorithm>

#include "core/launch_log.h"
#include "core/op_stack.h"
#include "core/recording_costs.h"
#include "core/string_table.h"
#include "cupti/graph_nodes.h"
#include "cupti/recording.h"
#include "gpu/launched_streams.h"

namespace epprof {
namespace {

// CUpti_ApiCallbackSite and CUpti_CallbackIdResource.
constexpr uint32_t kSiteEnter = 0;
constexpr uint32_t kContextDestroyStarting = 2;
constexpr uint32_t kStreamCreated = 3, kStreamDestroyStarting = 4;
constexpr uint32_t kGraphDestroyStarting = 10;
constexpr uint32_t kGraphNodeCreated = 13, kGraphNodeCloned = 20;
constexpr uint32_t kGraphExecCreateStarting = 17, kGraphExecCreated = 18;

void register_context(ThreadState* t, CUcontext context, uint64_t session) {
  t->context = context;
  t->context_session = session;
  Recording& c = recording();
  std::lock_guard<std::mutex> lock(c.contexts_mutex);
  if (std::find(c.contexts.begin(), c.contexts.end(), context) == c.contexts.end()) {
    c.contexts.push_back(context);
  }
}

void note_stream(const DriverCall& call, void* context, const void* params, uint32_t correlation) {
  auto* bytes = static_cast<const unsigned char*>(params);
  if (call.params == LaunchParams::kernel_config) memcpy(&bytes, bytes, sizeof bytes);
  if (!bytes) return;
  void* stream = nullptr;
  memcpy(&stream, bytes + call.stream_at, sizeof stream);
  bool is_graph = call.params == LaunchParams::unknown;
  stream_launched({context, stream, call.is_per_thread, is_graph, correlation});
}

void on_api_call(Recording& c, ThreadState* t, uint32_t domain, uint32_t cbid,
                 const unsigned char* data) {
  uint32_t name = c.calls.name(domain, cbid);
  if (!name) return;
  const CallbackFields& f = c.layout.callback.fields;
  uint64_t correlation = correlation_id(c, f.correlation.get<uint32_t>(data));
  if (f.site.get<uint32_t>(data) == kSiteEnter) {
    auto* context = f.context.get<void*>(data);
    uint64_t session = call_session.load(std::memory_order_relaxed);
    if (context && (context != t->context || t->context_session != session)) {
      register_context(t, context, session);
    }
    call_begins(t, correlation, name, domain == kDriverDomain ? kDriver : kRuntime);
    return;
  }
  auto* result = f.result.get<const int32_t*>(data);
  if (domain == kDriverDomain) {
    // `epprof_cupti_sync` needs the count: synchronizing is an error while a stream is captured.
    const DriverCall& call = c.calls.of_driver(cbid);
    if (call.begins_capture && result && *result == 0) c.stream_captures++;
    if (call.ends_capture && c.stream_captures > 0) c.stream_captures--;
    if (call.is_launch && !t->node_created && result && *result == 0) {
      t->launch_calls.store(t->launch_calls.load(std::memory_order_relaxed) + 1,
                            std::memory_order_relaxed);
      LaunchSignature launch =
          launch_signature(call.params, name, f.params.get<void*>(data));
      t->launch_hash = append_launch(t->launch_hash, launch.exact);
      t->function_hash = append_launch(t->function_hash, launch.function);
    }
    if (call.stream_at >= 0 && c.follows_streams && !t->in_profiler && !t->node_created && result &&
        *result == 0) {
      if (const void* params = f.params.get<void*>(data)) {
        note_stream(call, f.context.get<void*>(data), params, uint32_t(correlation));
      }
    }
    // A launch that creates a graph node belongs to a capture. If no capture is known, it began
    // before the session.
    if (t->node_created && call.is_launch && c.stream_captures == 0) c.stream_captures = 1;
  }
  CallInterval interval = call_ends(t, correlation, name, result ? *result : 0);
  if (domain != kDriverDomain || !result || *result != 0 || t->in_profiler) return;
  const DriverCall& call = c.calls.of_driver(cbid);
  if (call.of_stream != StreamCall::none && interval.start) {
    t->in_profiler = true;  // the driver is asked about the stream
    c.waits.add(call, f.context.get<void*>(data), f.params.get<void*>(data), uint32_t(correlation),
                interval, c.stream_captures > 0);
    t->in_profiler = false;
  }
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

void on_resource(Recording& c, ThreadState* t, uint32_t cbid, const unsigned char* data) {
  const ResourceFields& f = c.layout.resource.fields;
  if (cbid == kContextDestroyStarting) {
    auto* context = f.context.get<void*>(data);
    std::lock_guard<std::mutex> lock(c.contexts_mutex);
    c.contexts.erase(std::remove(c.contexts.begin(), c.contexts.end(), context),
                     c.contexts.end());
    return;
  }
  auto* graph = f.descriptor.get<const unsigned char*>(data);
  if (!graph || cbid == kStreamCreated || cbid == kStreamDestroyStarting) return;
  const GraphFields& g = c.layout.graph.fields;
  switch (cbid) {
    case kGraphDestroyStarting: return graph_destroyed(graph_id(g.graph.get<void*>(graph)));
    case kGraphExecCreateStarting: return instantiation_begins();
    case kGraphExecCreated:
      return instantiation_ends(executable_id(g.graph_exec.get<void*>(graph)));
  }
  uint64_t node = node_id(g.node.get<void*>(graph));
  if (!node) return;
  if (cbid == kGraphNodeCreated) {
    if (t) t->node_created = true;
    graph_node_created(node, top_op(), t ? launch_stack(t) : kNoStack);
  } else if (cbid == kGraphNodeCloned) {
    graph_node_cloned(node, node_id(g.original_node.get<void*>(graph)));
  }
}

// Also between sessions, for delays.
void on_stream(Recording& c, uint32_t cbid, const unsigned char* data) {
  if (!c.follows_streams) return;
  const ResourceFields& f = c.layout.resource.fields;
  switch (cbid) {
    case kStreamCreated: return stream_created(f.handle.get<void*>(data));
    case kStreamDestroyStarting: return stream_destroyed(f.handle.get<void*>(data));
    case kContextDestroyStarting: return context_destroyed(f.context.get<void*>(data));
  }
}

void on_callback(void*, uint32_t domain, uint32_t cbid, const void* data) {
  Recording& c = recording();
  if (domain == kResourceDomain) on_stream(c, cbid, static_cast<const unsigned char*>(data));
  if (!recording_launches.load(std::memory_order_relaxed)) return;
  int64_t begin = epprof_cost_begin(EPPROF_COST_LAUNCHES);
  ThreadState* t = this_thread();
  CallbackGate::Passage passage(c.gate, t);
  if (!passage) return;
  auto* bytes = static_cast<const unsigned char*>(data);
  if (domain == kResourceDomain) {
    on_resource(c, t, cbid, bytes);
  } else if (t) {
    on_api_call(c, t, domain, cbid, bytes);
  }
  epprof_cost_end(EPPROF_COST_LAUNCHES, begin);
}

void enable_callbacks(Recording& c, bool all_calls) {
  for (uint32_t domain : {kDriverDomain, kRuntimeDomain}) {
    for (uint32_t cbid = 1; cbid < kCallbackIds; cbid++) {
      const char* name = api_call_name(domain, cbid);
      if (!name || (!all_calls && (domain != kDriverDomain || !is_recorded_call(name)))) continue;
      c.calls.set_name(domain, cbid, intern(name));  // before the first callback
      cupti.EnableCallback(1, c.subscriber, domain, cbid);
    }
  }
  for (uint32_t cbid : {kContextDestroyStarting, kGraphNodeCreated, kGraphNodeCloned,
                        kGraphDestroyStarting, kGraphExecCreateStarting, kGraphExecCreated}) {
    cupti.EnableCallback(1, c.subscriber, kResourceDomain, cbid);
  }
}

void enable_stream_callbacks(Recording& c) {
  for (uint32_t cbid : {kContextDestroyStarting, kStreamCreated, kStreamDestroyStarting}) {
    cupti.EnableCallback(1, c.subscriber, kResourceDomain, cbid);
  }
}

}  // namespace

CUptiResult subscribe(Recording& c, bool all_calls) {
  c.calls.fill();
  begin_launched_streams(stop_following_streams(c));
  CUptiResult result = cupti.Subscribe(&c.subscriber, on_callback, nullptr);
  if (result == 0) {
    c.gate.open();
    enable_callbacks(c, all_calls);
    if (c.follows_streams) enable_stream_callbacks(c);
  } else {
    c.subscriber = nullptr;
  }
  return result;
}

void unsubscribe(Recording& c) {
  constexpr int64_t kLimitNs = 1000000000;
  c.gate.close(kLimitNs);
  if (!stop_following_streams(c) || !c.follows_streams) return;
  if (cupti.Subscribe(&c.subscriber, on_callback, nullptr) == 0) {
    enable_stream_callbacks(c);
  } else {
    c.subscriber = nullptr;
  }
}

bool stop_following_streams(Recording& c) {
  if (!c.subscriber) return false;
  cupti.Unsubscribe(c.subscriber);
  c.subscriber = nullptr;
  return true;
}

}  // namespace epprof

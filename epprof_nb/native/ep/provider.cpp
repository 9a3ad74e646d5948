#include "ep/provider.h"

#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <string_view>
#include <utility>

#include "ep/cuda/arena.h"
#include "ep/cuda/memory.h"
#include "ep/cuda/streams.h"
#include "ep/graphs/captured_graph.h"
#include "ep/interpreter.h"
#include "ep/node_description.h"
#include "ep/run_thread.h"
#include "ep/shape_nodes.h"
#include "ort/node_events.h"
#include "ort/run_observer.h"
#include "ort/status.h"

namespace epprof::ep {

struct UnclaimedNode {
  std::string name, op_type, domain, reason;
};
// Unclaimed nodes of the last graph that this thread partitioned.
thread_local std::vector<UnclaimedNode> unclaimed_nodes;
// Selections of the last session of this thread that no graph has.
thread_local std::vector<std::string> unmatched_types, unmatched_nodes;
thread_local bool has_control_flow = false;  // likewise

namespace {

// OrtEpDataLayout, and the domain of operators whose channels ONNX Runtime has moved to the end.
constexpr int32_t kChannelsFirst = 0, kChannelsLast = 1;
constexpr const char* kChannelsLastDomain = "com.ms.internal.nhwc";

struct Provider : Ep {
  std::unique_ptr<ep_session_plan> plan;
  std::atomic<bool> has_profiler{false};

  ~Provider() {
    if (!plan || plan->device < 0) return;
    // Python may be releasing the session, and pending work may need its lock.
    without_gil([](void* device) { reclaim_memory(*static_cast<int*>(device)); }, &plan->device);
  }
};

const char* name(const Ep*) { return kProviderName; }

bool is_selected(const ep_session_plan& plan, const Node* node) {
  const char* text = nullptr;
  if (!plan.types.empty()) {
    check(rt.graph_node_type(node, &text));
    if (!plan.types.count(text)) return false;
  }
  if (plan.nodes.empty()) return true;
  check(rt.graph_node_name(node, &text));
  return plan.nodes.count(text) != 0;
}

bool is_control_flow(std::string_view op_type) {
  return op_type == "If" || op_type == "Loop" || op_type == "Scan";
}

void note_match(ep_session_plan* plan, const Node* node) {
  const char* text = nullptr;
  check(rt.graph_node_type(node, &text));
  plan->unmatched_types.erase(text);
  if (is_control_flow(text)) plan->has_control_flow = true;
  check(rt.graph_node_name(node, &text));
  plan->unmatched_nodes.erase(text);
}

void show_unmatched(const ep_session_plan& plan) {
  unmatched_types.assign(plan.unmatched_types.begin(), plan.unmatched_types.end());
  unmatched_nodes.assign(plan.unmatched_nodes.begin(), plan.unmatched_nodes.end());
  has_control_flow = plan.has_control_flow;
}

void note_attributes(const ep_session_plan& plan, const Node* node) {
  const char *op_type = nullptr, *domain = nullptr;
  check(rt.graph_node_type(node, &op_type));
  check(rt.graph_node_domain(node, &domain));
  if (plan.kernels->of(domain, op_type).empty()) return;
  size_t count = 0;
  check(rt.graph_node_attribute_count(node, &count));
  std::vector<const OpAttr*> attributes(count);
  if (count) check(rt.graph_node_attributes(node, attributes.data(), count));
  for (const OpAttr* attribute : attributes) {
    const char* key = nullptr;
    int32_t type = 0;
    check(rt.attribute_name(attribute, &key));
    check(rt.attribute_type(attribute, &type));
    note_attribute(domain, op_type, key, type);
  }
}

void note_index(ep_session_plan* plan, const Node* node) {
  const char* text = nullptr;
  size_t id = 0;
  check(rt.graph_node_name(node, &text));
  check(rt.graph_node_id(node, &id));
  auto [known, added] = plan->node_indexes.emplace(text, int32_t(id));
  if (!added && known->second != int32_t(id)) known->second = -1;
}

UnclaimedNode describe(const Node* node, const std::string& reason) {
  const char *node_name = nullptr, *op_type = nullptr, *domain = nullptr;
  check(rt.graph_node_name(node, &node_name));
  check(rt.graph_node_type(node, &op_type));
  check(rt.graph_node_domain(node, &domain));
  return {node_name, op_type, domain, reason};
}

void log_refusal(const ep_session_plan& plan, const UnclaimedNode& node, bool has_kernel) {
  if (!plan.logger) return;
  std::string reason = !node.reason.empty() ? node.reason
                       : has_kernel         ? "it is not selected by the options only and nodes"
                                            : "there is no kernel for its operator, version or types";
  std::string name = node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
  std::string message = std::string(kProviderName) + " leaves node '" + node.name + "' (" + name +
                        ") to other providers: " + reason;
  consume_status(rt.log_message(plan.logger, kInfo, message.c_str(), __FILE__, __LINE__, __func__));
}

// The reason why the registry's kernel does not take a node; empty: it does.
std::string limit_of(const ep_session_plan& plan, const Node* node) {
  const char *op_type = nullptr, *domain = nullptr;
  int version = 0;
  check(rt.graph_node_type(node, &op_type));
  check(rt.graph_node_domain(node, &domain));
  check(rt.graph_node_version(node, &version));
  const PythonKernel* kernel = plan.kernels->find(domain, op_type, version);
  if (!kernel || !kernel->has_limits) return {};
  NodeDescription description;
  read_node(node, &description);
  ep_node described = description.view();
  char* reason = nullptr;
  raise(call_python([&] { return interpreter.limit_of(kernel->handle, &described, &reason); }));
  std::unique_ptr<char, void (*)(void*)> owner(reason, free);
  return reason ? reason : "";
}

Status* get_capability(Ep* self, const Graph* graph, GraphSupportInfo* support) {
  return as_status([&] {
    ep_session_plan& plan = *static_cast<Provider*>(self)->plan;
    size_t count = 0;
    check(rt.graph_node_count(graph, &count));
    std::vector<const Node*> nodes(count);
    if (count) check(rt.graph_nodes(graph, nodes.data(), count));
    std::vector<UnclaimedNode> unclaimed;
    std::set<const Node*> claimed;
    for (const Node* node : nodes) {
      const KernelDef* def = nullptr;
      note_attributes(plan, node);  // also of nodes that stay on the CPU
      note_index(&plan, node);
      note_match(&plan, node);
      check(rt.look_up_kernel(support, node, &def));
      bool selected = def && is_selected(plan, node);
      std::string reason = selected ? limit_of(plan, node) : "";
      if (selected && reason.empty()) {
        claimed.insert(node);
      } else {
        unclaimed.push_back(describe(node, reason));
        log_refusal(plan, unclaimed.back(), def != nullptr);
      }
    }
    if (plan.graphs) {
      for (const Node* node : shape_nodes(plan, nodes, claimed)) claimed.erase(node);
    }
    for (const Node* node : nodes) {
      if (claimed.count(node)) check(rt.add_single_node(support, node));
    }
    // The main graph comes last, after those inside its nodes.
    unclaimed_nodes = std::move(unclaimed);
    show_unmatched(plan);
  });
}

// A session gets kernels for channels as the last axis if it prefers that layout.
bool prefers_channels_last(const ep_session_plan& plan, const Declaration& declaration) {
  return declaration.domain == kChannelsLastDomain &&
         (plan.types.empty() || plan.types.count(declaration.op_type));
}

Status* get_preferred_data_layout(Ep* self, int32_t* layout) {
  const ep_session_plan& plan = *static_cast<Provider*>(self)->plan;
  *layout = kChannelsFirst;
  for (const auto& kernel : plan.kernels->all()) {
    if (prefers_channels_last(plan, kernel->declaration)) *layout = kChannelsLast;
  }
  return nullptr;
}

Status* should_convert_data_layout_for_op(Ep* self, const char* domain, const char* op_type,
                                          int32_t layout, int* should_convert) {
  const ep_session_plan& plan = *static_cast<Provider*>(self)->plan;
  *should_convert = 0;
  if (layout != kChannelsLast || *domain) return nullptr;
  for (const PythonKernel* kernel : plan.kernels->of(kChannelsLastDomain, op_type)) {
    if (prefers_channels_last(plan, kernel->declaration)) *should_convert = 1;
  }
  return nullptr;
}

Status* get_kernel_registry(Ep* self, const KernelRegistry** registry) {
  *registry = static_cast<Provider*>(self)->plan->kernels->registry();
  return nullptr;
}

Status* create_profiler(Ep* self, EpProfiler** profiler) {
  *profiler = nullptr;
  return as_status([&] {
    auto& provider = *static_cast<Provider*>(self);
    // As for the observer, the first profiler is the session's.
    *profiler = make_profiler(provider.plan->session, !provider.has_profiler.exchange(true));
  });
}

Status* on_run_start(Ep* self, const RunOptions*) {
  return as_status([&] {
    const ep_session_plan& plan = *static_cast<Provider*>(self)->plan;
    run_started(plan.session);
    if (plan.device >= 0) {
      run_starts_on_thread(plan.session);
      arena_of(plan.device).leave_stream();  // from a failed run
    }
    if (GraphRun* run = graph_run(plan.session)) {
      graph_run_started(run, plan.device, static_cast<CudaStream>(plan.stream));
    }
  });
}

Status* on_run_end(Ep* self, const RunOptions*, bool) {
  uint32_t session = static_cast<Provider*>(self)->plan->session;
  GraphRun* run = graph_run(session);
  Status* status = as_status([&] {
    if (run) graph_run_ended(run);
  });
  if (int device = static_cast<Provider*>(self)->plan->device; device >= 0) {
    run_ends_on_thread();
    arena_of(device).leave_stream();
  }
  run_ended(session);
  if (interpreter.end_run) interpreter.end_run();
  return status;
}

// For a session that uses the user's stream.
Status* share_stream(Ep* self, const MemoryDevice*, SyncStreamImpl** stream) {
  return as_status([&] {
    const ep_session_plan& plan = *static_cast<Provider*>(self)->plan;
    *stream = make_cuda_stream(plan.device, static_cast<CudaStream>(plan.stream));
  });
}

// IOBinding.synchronize_inputs and synchronize_outputs.
Status* synchronize(Ep* self) {
  return as_status([&] {
    arena_of(static_cast<Provider*>(self)->plan->device).synchronize();
  });
}

GraphRun* run_of(const Ep* self) {
  return graph_run(static_cast<const Provider*>(self)->plan->session);
}

// ONNX Runtime calls this when the session is created and at every run.
bool is_graph_capture_enabled(const Ep* self) {
  GraphRun* run = run_of(self);
  const ep_session_plan& plan = *static_cast<const Provider*>(self)->plan;
  if (!run) return capture_allowed() && !plan.has_control_flow;
  return run->state != GraphRunState::abandoned && run->state != GraphRunState::failed;
}

bool is_graph_captured(const Ep* self, int) {
  GraphRun* run = run_of(self);
  return run && run->graph &&
         (run->state == GraphRunState::captured || run->state == GraphRunState::warm_up);
}

Status* replay_graph(Ep* self, int) {
  return as_status([&] {
    GraphRun* run = run_of(self);
    if (!run || !run->graph) throw std::runtime_error("there is no graph to replay");
    std::string failed = replay(run);
    interpreter.end_run();
    if (!failed.empty()) throw std::runtime_error(failed);
  });
}

int32_t graph_capture_policy(const Ep*) { return kAllowCpuForShapes; }

Status* release_captured_graph(Ep* self, int gpu_graph_id) {
  return as_status([&] {
    interpreter.release_graphs(static_cast<Provider*>(self)->plan->session, gpu_graph_id);
  });
}

}  // namespace

Ep* make_provider(std::unique_ptr<ep_session_plan> plan) {
  auto provider = std::make_unique<Provider>();
  provider->version = kApiVersion;
  provider->get_name = name;
  provider->get_capability = get_capability;
  provider->get_preferred_data_layout = get_preferred_data_layout;
  provider->should_convert_data_layout_for_op = should_convert_data_layout_for_op;
  provider->on_run_start = on_run_start;
  provider->on_run_end = on_run_end;
  provider->get_kernel_registry = get_kernel_registry;
  provider->create_profiler = create_profiler;
  if (plan->graphs && runtime_api() >= kGraphApiVersion) {
    provider->version = std::min(runtime_api(), kReleaseGraphApiVersion);
    provider->is_graph_capture_enabled = is_graph_capture_enabled;
    provider->is_graph_captured = is_graph_captured;
    provider->replay_graph = replay_graph;
    provider->get_graph_capture_node_assignment_policy = graph_capture_policy;
    provider->release_captured_graph = release_captured_graph;
  }
  if (plan->device >= 0) {
    provider->sync = synchronize;
    if (plan->stream) provider->create_sync_stream_for_device = share_stream;
  }
  show_unmatched(*plan);  // a graph without nodes is not partitioned
  provider->plan = std::move(plan);
  return provider.release();
}

const ep_session_plan& session_plan_of(const KernelInfo* info) {
  const Ep* ep = nullptr;
  check(rt.kernel_ep(info, &ep));
  return *static_cast<const Provider*>(ep)->plan;
}

int32_t node_index(const ep_session_plan& plan, const std::string& name) {
  auto found = plan.node_indexes.find(name);
  return found == plan.node_indexes.end() ? -1 : found->second;
}

void release_provider(Ep* ep) { delete static_cast<Provider*>(ep); }

}  // namespace epprof::ep

extern "C" {

size_t ep_unclaimed_count(void) { return epprof::ep::unclaimed_nodes.size(); }

void ep_unclaimed_node(size_t index, const char** name, const char** op_type, const char** domain,
                       const char** reason) {
  const auto& node = epprof::ep::unclaimed_nodes[index];
  *name = node.name.c_str();
  *op_type = node.op_type.c_str();
  *domain = node.domain.c_str();
  *reason = node.reason.c_str();
}

int ep_has_control_flow(void) { return epprof::ep::has_control_flow; }

void ep_each_unmatched(int of_nodes, void (*each)(const char* name, void*), void* data) {
  const auto& names = of_nodes ? epprof::ep::unmatched_nodes : epprof::ep::unmatched_types;
  for (const std::string& name : names) each(name.c_str(), data);
}

}  // extern "C"

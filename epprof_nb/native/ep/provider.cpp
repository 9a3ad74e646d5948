#include "ep/provider.h"

#include <atomic>

#include "ep/cuda_memory.h"
#include "ep/cuda_streams.h"
#include "ep/interpreter.h"
#include "ep/native_kernels.h"
#include "ort/profiler.h"
#include "ort/run_observer.h"
#include "ort/status.h"

namespace epprof::ep {
namespace {

struct Provider : Ep {
  std::unique_ptr<ep_plan> plan;
  KernelRegistry* registry = nullptr;
  std::atomic<bool> has_profiler{false};

  ~Provider() {
    if (registry) rt.release_registry(registry);
    if (plan && plan->device >= 0) reclaim_memory(plan->device);
  }
};

const char* name(const Ep*) { return kProviderName; }

bool is_selected(const ep_plan& plan, const Node* node) {
  const char* text = nullptr;
  if (!plan.types.empty()) {
    check(rt.graph_node_type(node, &text));
    if (!plan.types.count(text)) return false;
  }
  if (plan.nodes.empty()) return true;
  check(rt.graph_node_name(node, &text));
  return plan.nodes.count(text) != 0;
}

void note_attributes(const ep_plan& plan, const Node* node) {
  const char *op_type = nullptr, *domain = nullptr;
  check(rt.graph_node_type(node, &op_type));
  check(rt.graph_node_domain(node, &domain));
  for (auto& kernel : plan.kernels) {
    const Definition& definition = kernel->definition;
    if (definition.op_type != op_type || definition.domain != domain) continue;
    size_t count = 0;
    check(rt.graph_node_attribute_count(node, &count));
    std::vector<const OpAttr*> attributes(count);
    if (count) check(rt.graph_node_attributes(node, attributes.data(), count));
    for (const OpAttr* attribute : attributes) {
      const char* key = nullptr;
      int32_t type = 0;
      check(rt.attribute_name(attribute, &key));
      check(rt.attribute_type(attribute, &type));
      note_attribute(definition, key, type);
    }
    return;
  }
}

Status* get_capability(Ep* self, const Graph* graph, GraphSupportInfo* support) {
  return as_status([&] {
    ep_plan& plan = *static_cast<Provider*>(self)->plan;
    size_t count = 0;
    check(rt.graph_node_count(graph, &count));
    std::vector<const Node*> nodes(count);
    if (count) check(rt.graph_nodes(graph, nodes.data(), count));
    for (const Node* node : nodes) {
      const KernelDef* def = nullptr;
      note_attributes(plan, node);  // also of what stays on the CPU
      check(rt.look_up_kernel(support, node, &def));
      if (!def || !is_selected(plan, node)) continue;
      check(rt.add_single_node(support, node));
    }
  });
}

Status* get_kernel_registry(Ep* self, const KernelRegistry** registry) {
  *registry = static_cast<Provider*>(self)->registry;
  return nullptr;
}

Status* create_profiler(Ep* self, EpProfiler** profiler) {
  *profiler = nullptr;
  return as_status([&] {
    auto& provider = *static_cast<Provider*>(self);
    // As for the observer: the first profiler is the session's.
    *profiler = make_profiler(provider.plan->session, !provider.has_profiler.exchange(true));
  });
}

Status* on_run_start(Ep* self, const RunOptions*) {
  run_started(static_cast<Provider*>(self)->plan->session);
  return nullptr;
}

Status* on_run_end(Ep* self, const RunOptions*, bool) {
  run_ended(static_cast<Provider*>(self)->plan->session);
  return nullptr;
}

// Of a session that uses a stream of the user's.
Status* share_stream(Ep* self, const MemoryDevice*, SyncStreamImpl** stream) {
  return as_status([&] {
    const ep_plan& plan = *static_cast<Provider*>(self)->plan;
    *stream = make_cuda_stream(plan.device, static_cast<CudaStream>(plan.stream));
  });
}

// IOBinding.synchronize_inputs and synchronize_outputs.
Status* synchronize(Ep* self) {
  return as_status([&] {
    CurrentDevice current(static_cast<Provider*>(self)->plan->device);
    check_cuda("cuCtxSynchronize", cuda.CtxSynchronize());
  });
}

}  // namespace

Ep* make_provider(std::unique_ptr<ep_plan> plan) {
  auto provider = std::make_unique<Provider>();
  provider->version = kApiVersion;
  provider->get_name = name;
  provider->get_capability = get_capability;
  provider->on_run_start = on_run_start;
  provider->on_run_end = on_run_end;
  provider->get_kernel_registry = get_kernel_registry;
  provider->create_profiler = create_profiler;
  check(rt.create_registry(&provider->registry));
  if (plan->device < 0) {
    add_copy_kernels(provider->registry);
  } else {
    add_cuda_copy_kernels(provider->registry, plan->device);
    provider->sync = synchronize;
    if (plan->stream) provider->create_sync_stream_for_device = share_stream;
  }
  if (plan->control_flow) add_control_flow_kernels(provider->registry, plan->device);
  for (auto& kernel : plan->kernels) {
    add_kernel(provider->registry, kernel->definition, create_python_kernel, kernel.get());
  }
  provider->plan = std::move(plan);
  return provider.release();
}

void release_provider(Ep* ep) { delete static_cast<Provider*>(ep); }

}  // namespace epprof::ep

ep_plan::~ep_plan() {
  for (auto& kernel : kernels) epprof::ep::interpreter.close_session(kernel->handle);
}

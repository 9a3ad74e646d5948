#include "ep/python_kernel.h"

#include <string.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "core/clock.h"
#include "core/fork.h"
#include "core/op_stack.h"
#include "ep/call.h"
#include "ep/cuda/arena.h"
#include "ep/cuda/memory.h"
#include "ep/graphs/capture_checks.h"
#include "ep/graphs/captured_graph.h"
#include "ep/graphs/launch_plans.h"
#include "ep/host/memory.h"
#include "ep/host/memory_pool.h"
#include "ep/interpreter.h"
#include "ep/known_views.h"
#include "ep/node_description.h"
#include "ep/provider.h"
#include "ep/run_thread.h"
#include "ort/status.h"

namespace epprof::ep {
namespace {

constexpr size_t kFewInputs = 16;

// Names and types by domain and operator type, of all models so far.
using Attributes = std::set<std::pair<std::string, int32_t>>;
ForkSafeMutex attributes_mutex;
std::map<std::pair<std::string, std::string>, Attributes>& seen_attributes =
    *new std::map<std::pair<std::string, std::string>, Attributes>;

Attributes attributes_of(const Declaration& declaration) {
  ForkLockGuard lock(attributes_mutex);
  return seen_attributes[{declaration.domain, declaration.op_type}];
}

struct Instance : KernelImpl {
  void* handle;  // of the node; the interpreter's
  const PythonKernel* kernel;
  uint32_t session;  // 0: on another provider, as an operator of a custom domain
  std::string node;
  int32_t node_index;
  KnownViews views;
  LaunchPlans plans;
};

// Kernels get declared host values as host memory, and other values as memory that the device can
// read, which includes pinned memory.
bool is_on_device(const Value* value, const PythonKernel& kernel, const std::vector<size_t>& on_host,
                  size_t index) {
  if (kernel.device < 0) return false;
  if (contains(on_host, index)) return false;
  const MemoryDevice* place = rt.value_memory_device(value);
  return place && rt.memory_device_type(place) == kGpuMemory;
}

// Calls the function of a node and adds the call to the graph. Returns false if this is impossible;
// then the capture has ended, and the node must run eagerly.
bool capture_call(const Instance& instance, KernelContext* context, const ep_tensor* inputs,
                  size_t count, void* stream) {
  const Declaration& declaration = instance.kernel->declaration;
  GraphRun* run = graph_run(instance.session);
  CudaGraph* cuda_graph = run->graph->cuda.get();
  if (writes_host_data(declaration, inputs, count)) {
    abandon_capture(run, instance.node,
                    "writes an output in host memory that depends on device memory. Leave it on "
                    "the device: define the kernel without host_outputs");
    return false;
  }
  size_t nodes_before = 0;
  if (cuda_graph) {
    try {
      cuda_graph->begin(static_cast<CudaStream>(stream));
    } catch (const std::runtime_error& error) {
      abandon_capture(run, instance.node, std::string("is the first one: ") + error.what());
      return false;
    }
    nodes_before = cuda_graph->node_count();
  }
  auto captured = std::make_unique<CapturedCall>();
  captured->kernel = instance.handle;
  captured->function = hold_function(run, instance.handle);
  captured->node = instance.node;
  captured->op_type = declaration.op_type;
  captured->node_index = instance.node_index;
  for (size_t i = 0; i < count; i++) {
    size_t bytes = 0;
    const Value* value = nullptr;
    check(rt.context_input(context, i, &value));
    if (value) check(rt.tensor_bytes(value, &bytes));
    captured->inputs.emplace_back(inputs[i], bytes);
    if (contains(declaration.host_inputs, i)) captured->inputs.back().keep_copy();
  }
  ep_call call;
  call.context = context;
  call.kernel = instance.kernel;
  call.device = instance.kernel->device;
  call.stream = stream;
  call.captured = captured.get();
  captured->start = epprof_now_ns();
  captured->op = capturing_op();
  char* error = call_python([&] {
    return interpreter.compute(instance.handle, &call, inputs, count, captured->function, nullptr);
  });
  captured->end = epprof_now_ns();
  if (cuda_graph && !error) {
    check_capture(run, *captured, nodes_before);
    captured->device_nodes = cuda_graph->node_count() - nodes_before;
  }
  if (run->violated) {
    free(error);
    abandon_capture(run, instance.node, std::string(run->violation));
    return false;
  }
  if (error) {
    fail_capture(run);
    raise(error);
  }
  bool on_device = false;
  for (size_t i = 0; i < captured->outputs.size(); i++) {
    CapturedTensor& output = captured->outputs[i];
    if (contains(declaration.host_outputs, i)) {
      output.copy.resize(std::max<size_t>(output.bytes, 1));  // written at each replay
    } else {
      on_device |= output.tensor.present != 0;
    }
  }
  // A call with only host memory is a constant of the graph. Its readers have a copy.
  if (on_device) add_call(run, std::move(captured));
  return true;
}

// The op of a node for which ONNX Runtime reports no event.
class NodeOp {
 public:
  explicit NodeOp(const Instance& instance)
      : op_(open_node_op(instance.session, instance.node,
                         instance.kernel->declaration.op_type, instance.node_index)) {}
  ~NodeOp() {
    if (op_) pop_op(op_);
  }
  NodeOp(const NodeOp&) = delete;

 private:
  uint64_t op_;
};

// Errors have the same form as errors of Python calls.
bool run_plan(const LaunchPlan& plan, const Instance& instance, ep_call* call,
              const ep_tensor* inputs) {
  try {
    return plan.run(call, inputs);
  } catch (const std::runtime_error& error) {
    const std::string& op_type = instance.kernel->declaration.op_type;
    std::string where = instance.node.empty() ? "a " + op_type + " node"
                                              : "node '" + instance.node + "' (" + op_type + ")";
    throw std::runtime_error("The kernel of " + where + " failed: " + error.what());
  }
}

Status* compute(KernelImpl* self, KernelContext* context) {
  return as_status([&] {
    Instance& instance = *static_cast<Instance*>(self);
    const PythonKernel& kernel = *instance.kernel;
    int device = kernel.device;
    std::optional<CurrentDevice> current;
    void* stream = nullptr;
    if (device >= 0) {
      current.emplace(device);
      check(rt.compute_stream(context, &stream));
      arena_of(device).use_stream(static_cast<CudaStream>(stream));
    }
    size_t count = 0;
    check(rt.context_input_count(context, &count));
    ep_tensor few[kFewInputs];
    std::vector<ep_tensor> many(count > kFewInputs ? count : 0);
    ep_tensor* inputs = count > kFewInputs ? many.data() : few;
    for (size_t i = 0; i < count; i++) {
      const Value* value = nullptr;
      check(rt.context_input(context, i, &value));
      read_tensor(value, &inputs[i]);
      if (!value || !is_on_device(value, kernel, kernel.declaration.host_inputs, i)) continue;
      inputs[i].on_device = 1;
      check(rt.tensor_bytes(value, &inputs[i].bytes));
    }
    NodeOp op(instance);
    if (is_capturing(instance.session) &&
        capture_call(instance, context, inputs, count, stream)) {
      return;
    }
    // Calls on the host device are recorded; on CUDA devices, their launches are.
    bool is_view = kernel.declaration.is_view && count && inputs[0].present;
    if (is_view && (device >= 0 || !recording_ops.load(std::memory_order_relaxed)) &&
        instance.views.make_output(context, instance.handle, inputs, count)) {
      return;
    }
    ep_call call;
    call.context = context;
    call.kernel = &kernel;
    call.device = device;
    call.stream = stream;
    call.is_on_thread_of_run = is_thread_of_run(instance.session);
    if (device >= 0 && !is_view) {
      LaunchPlanPtr plan = instance.plans.find(instance.handle, inputs, count);
      if (plan && run_plan(*plan, instance, &call, inputs)) return;
      call.inputs = inputs;
      call.input_count = count;
      call.plans = &instance.plans;
    }
    std::vector<int64_t> shape;
    if (is_view) {
      call.first_input = inputs[0].data;
      call.view = &shape;
    }
    raise(call_python([&] {
      return interpreter.compute(instance.handle, &call, inputs, count, nullptr, nullptr);
    }));
    if (call.made_view) instance.views.add(instance.handle, inputs, count, shape);
  });
}

void release_kernel(KernelImpl* self) {
  auto* instance = static_cast<Instance*>(self);
  interpreter.release_kernel(instance->handle);
  delete instance;
}

}  // namespace

void note_attribute(const char* domain, const char* op_type, const char* name, int32_t type) {
  ForkLockGuard lock(attributes_mutex);
  seen_attributes[{domain, op_type}].insert({name, type});
}

Status* create_python_kernel(void* state, const KernelInfo* info, KernelImpl** made) {
  return as_status([&] {
    auto* kernel = static_cast<PythonKernel*>(state);
    NodeDescription node;
    Attributes attributes = attributes_of(kernel->declaration);
    read_node(info, attributes, &node);
    ep_node described = node.view();
    void* handle = nullptr;
    raise(call_python(
        [&] { return interpreter.create_kernel(kernel->handle, &described, &handle); }));
    auto* instance = new Instance;
    static_cast<KernelImpl&>(*instance) = {kApiVersion, 0, compute, release_kernel, nullptr, nullptr};
    instance->handle = handle;
    instance->kernel = kernel;
    instance->node = node.name;
    const ep_session_plan* plan = kernel->of_provider ? &session_plan_of(info) : nullptr;
    instance->session = plan ? plan->session : 0;
    instance->node_index = plan ? node_index(*plan, node.name) : -1;
    *made = instance;
  });
}

}  // namespace epprof::ep

using namespace epprof::ep;

extern "C" {

char* ep_call_output(ep_call* call, size_t index, const int64_t* dims, size_t rank,
                     ep_tensor* output) {
  *output = {};
  if (call->replayed_outputs) {
    if (index < call->replayed_outputs->size()) *output = (*call->replayed_outputs)[index];
    if (output->present && output->rank == rank && std::equal(dims, dims + rank, output->dims)) {
      return nullptr;
    }
    call->violation = "makes an output of another shape than in the capture, so the shape depends "
                      "on the data. A graph has fixed shapes: run this model without "
                      "enable_cuda_graph";
    return strdup("its shape differs from the shape in the captured run");
  }
  Value* value = nullptr;
  std::string failed = consume_status(rt.context_output(call->context, index, dims, rank, &value));
  if (failed.empty() && value) {
    failed = consume_status(rt.tensor_shape(value, &output->type, &output->dims, &output->rank));
    if (failed.empty()) failed = consume_status(rt.tensor_mutable_data(value, &output->data));
    size_t bytes = 0;
    if (failed.empty()) failed = consume_status(rt.tensor_bytes(value, &bytes));
    const PythonKernel& kernel = *call->kernel;
    bool on_device =
        failed.empty() && is_on_device(value, kernel, kernel.declaration.host_outputs, index);
    // ONNX Runtime passes on the allocator's null.
    if (failed.empty() && bytes && !output->data) {
      failed = on_device ? out_of_device_memory(kernel.device, bytes) : out_of_memory(bytes);
    }
    output->present = 1;
    output->on_device = on_device;
    output->bytes = on_device ? bytes : 0;
    if (call->view && failed.empty() && index == 0 && output->data == call->first_input) {
      call->view->assign(dims, dims + rank);
      call->made_view = true;
    }
    if (call->captured && failed.empty()) {
      std::vector<epprof::ep::CapturedTensor>& outputs = call->captured->outputs;
      while (outputs.size() <= index) outputs.emplace_back(ep_tensor{}, 0);
      outputs[index] = epprof::ep::CapturedTensor(*output, bytes);
    }
  }
  return failed.empty() ? nullptr : strdup(failed.c_str());
}

int ep_call_is_replayed(const ep_call* call) { return call->replayed_outputs != nullptr; }

int ep_call_device(const ep_call* call, void** stream) {
  *stream = call->stream;
  return call->device;
}

int ep_call_is_captured(const ep_call* call) { return call->captured != nullptr; }

int ep_call_is_on_thread_of_run(const ep_call* call) { return call->is_on_thread_of_run; }

void ep_retain(const void* data) {
  for (int device = 0; device < device_count(); device++) {
    if (arena_of(device).retain(data)) return;
  }
  pool_retain(data);
}

}  // extern "C"

// The C functions that build a session's plan.
#include "ep/api.h"

#include <string.h>

#include <typeinfo>
#include <utility>
#include <vector>

#include "ep/cuda/arena.h"
#include "ep/cuda/driver.h"
#include "ep/cuda/memory.h"
#include "ep/host/memory_pool.h"
#include "ep/interpreter.h"
#include "ep/provider.h"

// pybind11 finds the class of a Python object by the name of this type.
namespace onnxruntime::python {
struct PySessionOptions {};
}  // namespace onnxruntime::python

using namespace epprof::ep;

static constexpr int kHostDevice = -1;  // in front of the CUDA devices

extern "C" {

void ep_session_plan_use_kernels(ep_session_plan* plan, const ep_kernels* kernels) {
  plan->kernels = kernels->set;
}

void ep_session_plan_set_session(ep_session_plan* plan, uint32_t number) { plan->session = number; }
void ep_session_plan_capture_graphs(ep_session_plan* plan) { plan->graphs = true; }
void ep_session_plan_use_stream(ep_session_plan* plan, void* stream) { plan->stream = stream; }
void ep_session_plan_select_type(ep_session_plan* plan, const char* op_type) {
  plan->types.insert(op_type);
  plan->unmatched_types.insert(op_type);
}
void ep_session_plan_select_node(ep_session_plan* plan, const char* name) {
  plan->nodes.insert(name);
  plan->unmatched_nodes.insert(name);
}

char* ep_load_driver(const char* path, int* devices) {
  std::string failed = load_driver(path);
  *devices = device_count();
  return failed.empty() ? nullptr : strdup(failed.c_str());
}

void ep_device_statistics(int device, ep_memory_statistics* now) {
  *now = {};
  if (device < 0 || device >= device_count()) return;  // 0 devices until the driver is open
  ArenaStats stats = arena_of(device).stats();
  *now = {stats.in_use, stats.most_in_use, stats.reserved, stats.allocations,
          stats.regions_allocated};
}

void ep_memory_log_start(size_t most) { start_memory_logs(most); }

void ep_memory_log_stop(void) {
  stop_memory_logs();
  for (int i = 0; i < device_count(); i++) arena_of(i).end_memory_log();
  pool_end_memory_log();
}

epprof_columns* ep_memory_log_read(uint64_t* dropped) {
  std::vector<int64_t> device, time, address, bytes, requested, stream, op;
  std::vector<uint8_t> action;
  *dropped = 0;
  for (int i = kHostDevice; i < device_count(); i++) {
    uint64_t cut;
    auto events = i == kHostDevice ? pool_memory_events(&cut) : arena_of(i).memory_events(&cut);
    for (const MemoryEvent& event : events) {
      device.push_back(i);
      time.push_back(event.time);
      address.push_back(int64_t(event.address));
      bytes.push_back(int64_t(event.bytes));
      requested.push_back(int64_t(event.requested));
      stream.push_back(int64_t(event.stream));
      op.push_back(int64_t(event.op));
      action.push_back(event.action);
    }
    *dropped += cut;
  }
  auto* columns = new epprof::Columns;
  columns->add("device_id", std::move(device));
  columns->add("time_ns", std::move(time));
  columns->add("address", std::move(address));
  columns->add("bytes", std::move(bytes));
  columns->add("requested_bytes", std::move(requested));
  columns->add("stream_id", std::move(stream));
  columns->add("op_id", std::move(op));
  columns->add("action", std::move(action));
  return columns;
}

void* ep_device_allocate(int device, size_t bytes, char** failed) {
  try {
    void* memory = arena_of(device).allocate(bytes, nullptr);
    if (!memory) *failed = strdup(out_of_device_memory(device, bytes).c_str());
    return memory;
  } catch (const std::exception& error) {
    *failed = strdup(error.what());
    return nullptr;
  }
}

void ep_device_free(int device, void* memory) { arena_of(device).free(memory); }

void ep_device_configure(int device, const size_t* limit, int grow_exactly) {
  CudaArena& arena = arena_of(device);
  if (limit) arena.limit(*limit);
  if (grow_exactly >= 0) arena.grow_exactly(grow_exactly != 0);
}

char* ep_take_allocation_failure() {
  std::string failure = take_allocation_failure();
  return failure.empty() ? nullptr : strdup(failure.c_str());
}

int ep_device_of(const void* data) {
  for (int device = 0; device < device_count(); device++) {
    if (arena_of(device).owns(data)) return device;
  }
  return pool_owns(data) ? -1 : -2;
}

int ep_cuda_device_at(const void* data) { return device_at(data); }

void ep_set_interpreter(const ep_interpreter* given) { interpreter = *given; }

const void* ep_session_options_type(const char** name) {
  *name = typeid(std::type_info).name();
  return &typeid(onnxruntime::python::PySessionOptions);
}

const char* ep_run_config_entry(const void* run_options, const char* key) {
  return rt.run_config_entry ? rt.run_config_entry(static_cast<const RunOptions*>(run_options), key)
                             : nullptr;
}

}  // extern "C"

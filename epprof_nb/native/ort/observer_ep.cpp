// The observer: an execution provider that claims no node, so that ONNX Runtime tells its
// profiler of every event of the session it is attached to. Loaded by ONNX Runtime, from the same
// file as the Python extension.
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <exception>
#include <string>
#include <typeinfo>

#include "core/api.h"
#include "ort/device_events.h"
#include "ort/event_details.h"
#include "ort/profiler.h"
#include "ort/runtime.h"

// Only its type's name counts: pybind11 finds a Python object's class by it.
struct OrtRunOptions {};

namespace epprof::ort {
namespace {

constexpr const char* kName = "EpprofObserver";
// ONNX Runtime hands an execution provider its options as ep.<its name in lower case>.<key>.
constexpr const char* kTokenKey = "ep.epprofobserver.token";

std::atomic<uint32_t> sessions{0};

struct Observer : Ep {
  uint32_t session;
  std::atomic<bool> has_profiler{false};
};

const char* ep_name(const Ep*) { return kName; }
Status* get_capability(Ep*, const Graph*, GraphSupportInfo*) { return nullptr; }

Status* create_profiler(Ep* self, EpProfiler** profiler) {
  *profiler = nullptr;
  auto* observer = static_cast<Observer*>(self);
  try {
    // The first one is the session's own, made with it; each profiled run makes one more.
    *profiler = make_profiler(observer->session, !observer->has_profiler.exchange(true));
    return nullptr;
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

uint32_t session_of(const SessionOptions* options) {
  char text[16];
  size_t size = sizeof text;
  if (Status* status = api.session_config(options, kTokenKey, text, &size)) {
    api.release_status(status);  // chosen by a selection policy, say: nobody gave it a number
    return ++sessions;
  }
  return uint32_t(strtoul(text, nullptr, 10));
}

const char* factory_name(const EpFactory*) { return kName; }
// ONNX Runtime's selection policies take the first CPU device that is not its own, which it knows
// by this vendor. So named, the observer is never chosen in place of what the user would get.
const char* vendor(const EpFactory*) { return "Microsoft"; }
uint32_t vendor_id(const EpFactory*) { return 0; }
const char* version(const EpFactory*) { return "0.1.0"; }
bool is_stream_aware(const EpFactory*) { return false; }
void release_allocator(EpFactory*, Allocator*) {}

Status* get_supported_devices(EpFactory* self, const HardwareDevice* const* devices, size_t count,
                              EpDevice** found, size_t room, size_t* found_count) {
  *found_count = 0;
  for (size_t i = 0; i < count && room; i++) {
    if (api.device_type(devices[i]) != kCpu) continue;
    if (Status* status = api.create_ep_device(self, devices[i], nullptr, nullptr, &found[0])) {
      return status;
    }
    *found_count = 1;
    break;
  }
  return nullptr;
}

Status* create_ep(EpFactory*, const HardwareDevice* const*, const KeyValuePairs* const*, size_t,
                  const SessionOptions* options, const Logger*, Ep** ep) {
  *ep = nullptr;
  try {
    auto* observer = new Observer{};
    observer->version = kApiVersion;
    observer->get_name = ep_name;
    observer->get_capability = get_capability;
    observer->create_profiler = create_profiler;
    observer->session = session_of(options);
    *ep = observer;
    return nullptr;
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

void release_ep(EpFactory*, Ep* ep) { delete static_cast<Observer*>(ep); }

Status* create_allocator(EpFactory*, const MemoryInfo*, const KeyValuePairs*, Allocator** out) {
  *out = nullptr;
  return nullptr;
}

Status* create_data_transfer(EpFactory*, DataTransfer** out) {
  *out = nullptr;
  return nullptr;
}

EpFactory factory = {kApiVersion,       factory_name,         vendor,
                     get_supported_devices, create_ep,        release_ep,
                     vendor_id,         version,              nullptr,
                     create_allocator,  release_allocator,    create_data_transfer,
                     is_stream_aware,   {}};

char* message_of(Status* status) {
  std::string message = take_message(status);
  return message.empty() ? nullptr : strdup(message.c_str());
}

}  // namespace
}  // namespace epprof::ort

using namespace epprof::ort;

extern "C" {

__attribute__((visibility("default"))) Status* CreateEpFactories(
    const char*, const ApiBase* base, const Logger*, EpFactory** factories, size_t room,
    size_t* count) {
  *count = 0;
  bool refused = false;
  Status* status = load_api(base, &refused);
  if (refused || !room) return status;
  factories[0] = &factory;
  *count = 1;
  return nullptr;
}

__attribute__((visibility("default"))) Status* ReleaseEpFactory(EpFactory*) { return nullptr; }

const char* ep_ort_runtime(void) { return runtime.c_str(); }

uint32_t ep_ort_new_session(void) { return ++sessions; }

char* ep_ort_profile_run(void* run_options, const char* file_prefix) {
  if (runtime.empty()) return strdup("ONNX Runtime has not loaded the observer");
  auto* options = static_cast<RunOptions*>(run_options);
  return message_of(file_prefix ? api.enable_run_profiling(options, file_prefix)
                                : api.disable_run_profiling(options));
}

void ep_ort_keep_event(uint32_t session, uint64_t run_op, const char* name, int64_t start, int64_t duration,
                       int32_t thread, const char* const* args, size_t count) {
  DeviceEvent event{name, start, duration, thread, {}};
  for (size_t i = 0; i + 1 < count; i += 2) event.args.emplace_back(args[i], args[i + 1]);
  keep_event({session, run_op}, std::move(event));
}

void ep_ort_on_run_file(ep_ort_file_opened opened, ep_ort_file_ending ending) {
  on_run_file(opened, ending);
}

void ep_ort_expect_run_file(int expected) { expect_run_file(expected != 0); }

int32_t ep_ort_nodes_of_last_run(void) { return take_nodes_of_last_run(); }

uint64_t ep_ort_begin_run(uint32_t session) { return begin_run(session); }

void ep_ort_end_run(uint64_t op_id) { end_run(op_id); }

const void* ep_ort_run_options_type(const char** name) {
  *name = typeid(std::type_info).name();
  return &typeid(OrtRunOptions);
}

ep_columns* ep_ort_details(uint32_t first) {
  std::vector<uint32_t> session, op_type, provider, inputs, outputs;
  std::vector<int32_t> node_index;
  for (const Details& d : details_from(first)) {
    session.push_back(d.session);
    node_index.push_back(d.node_index);
    op_type.push_back(d.op_type);
    provider.push_back(d.provider);
    inputs.push_back(d.input_shapes);
    outputs.push_back(d.output_shapes);
  }
  auto* columns = new epprof::Columns;
  columns->add("session", std::move(session));
  columns->add("node_index", std::move(node_index));
  columns->add("op_type", std::move(op_type));
  columns->add("provider", std::move(provider));
  columns->add("input_shapes", std::move(inputs));
  columns->add("output_shapes", std::move(outputs));
  return columns;
}

}  // extern "C"

// The observer: an execution provider that claims no node. ONNX Runtime reports every event of the
// session to its profiler.
#include "ort/observer_ep.h"

#include <atomic>
#include <exception>

#include "ort/node_events.h"
#include "ort/run_observer.h"
#include "ort/runtime.h"
#include "ort/status.h"

namespace epprof::ort {
namespace {

std::atomic<uint32_t> sessions{0};
thread_local bool is_creating = false;  // between begin_session and end_session
thread_local uint32_t created_session = 0;

struct Observer : Ep {
  uint32_t session;
  std::atomic<bool> has_profiler{false};
};

const char* ep_name(const Ep*) { return kObserverName; }
Status* get_capability(Ep*, const Graph*, GraphSupportInfo*) { return nullptr; }

Status* create_profiler(Ep* self, EpProfiler** profiler) {
  *profiler = nullptr;
  auto* observer = static_cast<Observer*>(self);
  try {
    // The first profiler is the session's, created with it. Each profiled run creates another one.
    *profiler = make_profiler(observer->session, !observer->has_profiler.exchange(true));
    return nullptr;
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

Status* on_run_start(Ep* self, const RunOptions*) {
  run_started(static_cast<Observer*>(self)->session);
  return nullptr;
}

Status* on_run_end(Ep* self, const RunOptions*, bool) {
  run_ended(static_cast<Observer*>(self)->session);
  return nullptr;
}

const char* factory_name(const EpFactory*) { return kObserverName; }
// The selection policies prefer CPU devices that are not ONNX Runtime's own, which have this
// vendor. With this vendor, they never choose the observer over the user's provider.
const char* vendor(const EpFactory*) { return "Microsoft"; }
uint32_t vendor_id(const EpFactory*) { return 0; }
const char* version(const EpFactory*) { return EPPROF_VERSION; }
bool is_stream_aware(const EpFactory*) { return false; }
void release_allocator(EpFactory*, Allocator*) {}

Status* get_supported_devices(EpFactory* self, const HardwareDevice* const* devices, size_t count,
                              EpDevice** found, size_t room, size_t* found_count) {
  if (found_count) *found_count = 0;
  if (!found_count || (count && !devices) || (room && !found)) {
    return null_in("GetSupportedDevices");
  }
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
                  const SessionOptions*, const Logger*, Ep** ep) {
  if (!ep) return null_in("CreateEp");
  *ep = nullptr;
  try {
    auto* observer = new Observer{};
    observer->version = kApiVersion;
    observer->get_name = ep_name;
    observer->get_capability = get_capability;
    observer->on_run_start = on_run_start;
    observer->on_run_end = on_run_end;
    observer->create_profiler = create_profiler;
    observer->session = new_session();
    *ep = observer;
    return nullptr;
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

void release_ep(EpFactory*, Ep* ep) { delete static_cast<Observer*>(ep); }

Status* create_allocator(EpFactory*, const MemoryInfo*, const KeyValuePairs*, Allocator** out) {
  if (!out) return null_in("CreateAllocator");
  *out = nullptr;
  return nullptr;
}

Status* create_data_transfer(EpFactory*, DataTransfer** out) {
  if (!out) return null_in("CreateDataTransfer");
  *out = nullptr;
  return nullptr;
}

EpFactory factory = {kApiVersion,       factory_name,         vendor,
                     get_supported_devices, create_ep,        release_ep,
                     vendor_id,         version,              nullptr,
                     create_allocator,  release_allocator,    create_data_transfer,
                     is_stream_aware,   {}};

}  // namespace

uint32_t new_session() {
  if (is_creating && created_session) return 0;
  return created_session = ++sessions;
}

void begin_session() {
  is_creating = true;
  created_session = 0;
}

uint32_t end_session() {
  is_creating = false;
  return created_session;
}

EpFactory* observer_factory() { return &factory; }

}  // namespace epprof::ort

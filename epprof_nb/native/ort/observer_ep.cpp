// The observer: an execution provider that claims no node, so that ONNX Runtime tells its
// profiler of every event of the session it is attached to. Loaded by ONNX Runtime, from the same
// file as the Python extension.
#include "ort/observer_ep.h"

#include <stdlib.h>

#include <atomic>
#include <exception>

#include "ort/profiler.h"
#include "ort/runtime.h"

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
    return new_session_id();
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

}  // namespace

uint32_t new_session_id() { return ++sessions; }

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

}  // extern "C"

#include "ep/factory.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <memory>
#include <string_view>
#include <vector>

#include "ep/api.h"
#include "ep/cuda/driver.h"
#include "ep/declaration.h"
#include "ep/graphs/captured_graph.h"
#include "ep/host/memory.h"
#include "ep/host/streams.h"
#include "ep/interpreter.h"
#include "ep/provider.h"
#include "ort/status.h"

namespace epprof::ep {

ep_interpreter interpreter{};

void raise(char* message) {
  if (!message) return;
  std::string text = message;
  free(message);
  throw std::runtime_error(text);
}

void connect() {
  if (interpreter.open_session) return;
  raise(ep_connect_python());
  if (interpreter.open_session) return;
  Dl_info here{};
  dladdr(reinterpret_cast<void*>(create_provider), &here);
  throw std::runtime_error(std::string("ONNX Runtime has loaded ") + here.dli_fname +
                           ", which is not the library of the Python package epprof_nb in this "
                           "process. Unregister it, and register the file that "
                           "epprof_nb.ep.get_library_path() returns");
}

namespace {

thread_local bool host_only = false;

// ONNX Runtime passes the options of an execution provider as ep.<lower-case name>.<key>.
constexpr std::string_view kOptionPrefix = "ep.epprofexecutionprovider.";
constexpr std::string_view kCudaPrefix = "ep.cuda.";
constexpr std::string_view kContextEnable = "ep.context_enable";

const char* factory_name(const EpFactory*) { return kProviderName; }
// As for the observer, no selection policy chooses a provider with this vendor on the CPU's device.
const char* vendor(const EpFactory*) { return "Microsoft"; }
uint32_t vendor_id(const EpFactory*) { return 0; }
const char* version(const EpFactory*) { return EPPROF_VERSION; }
// A program may create streams, but sessions whose nodes run at once need none.
bool is_stream_aware(const EpFactory*) { return !capture_allowed(); }

Status* get_supported_devices(EpFactory* self, const HardwareDevice* const* devices, size_t count,
                              EpDevice** found, size_t room, size_t* found_count) {
  if (found_count) *found_count = 0;
  if (!found_count || (count && !devices) || (room && !found)) {
    return null_in("GetSupportedDevices");
  }
  return as_status([&] {
    for (size_t i = 0; i < count && room; i++) {
      if (api.device_type(devices[i]) != kCpu) continue;
      KeyValuePairs* option = nullptr;
      rt.create_pairs(&option);
      std::unique_ptr<KeyValuePairs, void (*)(KeyValuePairs*)> options(option, rt.release_pairs);
      // As its memory, OrtValue(..., "gpu", 0). ONNX Runtime also finds it by this number, so a CUDA
      // device must not have it too.
      if (!host_only && !device_count()) rt.add_pair(option, "device_id", "0");
      // Without this entry, device_id=0 would find the host device.
      KeyValuePairs* made = nullptr;
      rt.create_pairs(&made);
      std::unique_ptr<KeyValuePairs, void (*)(KeyValuePairs*)> metadata(made, rt.release_pairs);
      rt.add_pair(made, kDeviceIdKey, "-1");
      rt.add_pair(made, "device", "host");
      rt.add_pair(made, "name", "host device");
      check(api.create_ep_device(self, devices[i], made, options.get(), &found[0]));
      *found_count = 1;
      check(rt.add_allocator_info(found[0], device_memory_info()));
      break;
    }
  });
}

// A delegate may choose the same device twice.
void refuse_several(const KeyValuePairs* const* chosen, size_t count) {
  auto number = [&](size_t i) {
    const char* text = rt.pair(chosen[i], kDeviceIdKey);
    return std::string_view(text ? text : "");
  };
  for (size_t i = 1; i < count; i++) {
    if (number(i) == number(0)) continue;
    throw std::runtime_error("a session has one device of " + std::string(kProviderName) +
                             ", and " + std::to_string(count) +
                             " were given. Pass one, and create a session for each other one");
  }
}

}  // namespace

Status* create_provider(int device, const KeyValuePairs* const* chosen, size_t count,
                        const SessionOptions* options, const Logger* logger, Ep** ep) {
  if (!ep || (count && !chosen)) return null_in("CreateEp");
  *ep = nullptr;
  return as_status([&] {
    refuse_several(chosen, count);
    KeyValuePairs* entries = nullptr;
    check(rt.config_entries(options, &entries));
    std::unique_ptr<KeyValuePairs, void (*)(KeyValuePairs*)> owner(entries, rt.release_pairs);
    const char *const *keys = nullptr, *const *values = nullptr;
    size_t count = 0;
    rt.pairs(entries, &keys, &values, &count);
    std::vector<const char*> own_keys, own_values;
    for (size_t i = 0; i < count; i++) {
      std::string_view key(keys[i]);
      bool is_own = key.substr(0, kOptionPrefix.size()) == kOptionPrefix;
      // Options for CUDA devices keep their prefix, which Python removes.
      if (!is_own && key != kContextEnable && key.substr(0, kCudaPrefix.size()) != kCudaPrefix) {
        continue;
      }
      own_keys.push_back(keys[i] + (is_own ? kOptionPrefix.size() : 0));
      own_values.push_back(values[i]);
    }
    auto plan = std::make_unique<ep_session_plan>();
    plan->device = device;
    plan->logger = logger;
    connect();
    raise(call_python([&] {
      return interpreter.open_session(device, own_keys.data(), own_values.data(), own_keys.size(),
                                      plan.get());
    }));
    *ep = make_provider(std::move(plan));
  });
}

Status* count_domains(EpFactory*, size_t* count) {
  if (!count) return null_in("GetNumCustomOpDomains");
  *count = 0;
  return as_status([&] {
    connect();
    raise(interpreter.list_domains(nullptr, 0, count));
  });
}

// ONNX Runtime cannot receive fewer than it has counted, so later ones are left out, and none is
// ever removed.
Status* list_domains(EpFactory*, CustomOpDomain** domains, size_t room) {
  if (room && !domains) return null_in("GetCustomOpDomains");
  return as_status([&] {
    connect();
    std::vector<ep_domain*> found(room);
    size_t count = 0;
    raise(interpreter.list_domains(found.data(), room, &count));
    if (count < room) throw std::runtime_error("the operators of epprof_nb have changed meanwhile");
    for (size_t i = 0; i < room; i++) domains[i] = domain_of(found[i]);
  });
}

namespace {

Status* create_ep(EpFactory*, const HardwareDevice* const*, const KeyValuePairs* const* metadata,
                  size_t count, const SessionOptions* options, const Logger* logger, Ep** ep) {
  return create_provider(-1, metadata, count, options, logger, ep);
}

void release_ep(EpFactory*, Ep* ep) { release_provider(ep); }

Status* create_allocator(EpFactory*, const MemoryInfo* info, const KeyValuePairs*,
                         Allocator** allocator) {
  if (!allocator) return null_in("CreateAllocator");
  return as_status([&] { *allocator = make_allocator(info); });
}

void release_allocator_of(EpFactory*, Allocator* allocator) { release_allocator(allocator); }

Status* create_data_transfer(EpFactory*, DataTransfer** transfer) {
  if (!transfer) return null_in("CreateDataTransfer");
  *transfer = make_data_transfer();
  return nullptr;
}

Status* create_stream(EpFactory*, const MemoryDevice*, const KeyValuePairs*,
                      SyncStreamImpl** stream) {
  if (!stream) return null_in("CreateSyncStreamForDevice");
  return as_status([&] { *stream = make_host_stream(); });
}

EpFactory factory = {kApiVersion,       factory_name,         vendor,
                     get_supported_devices, create_ep,        release_ep,
                     vendor_id,         version,              nullptr,
                     create_allocator,  release_allocator_of, create_data_transfer,
                     is_stream_aware,   create_stream,        {},
                     count_domains,     list_domains,         {}};

}  // namespace

ort::EpFactory* host_factory() { return &factory; }

// A registration by the Python package offers one kind of device. One by a user offers all devices,
// as other providers do. The host device comes first, because ONNX Runtime takes the first device if
// none is chosen.
size_t provider_factories(std::string_view registered_name, EpFactory** factories, size_t room) {
  if (!interpreter.open_session) raise(ep_connect_python_soon());
  size_t count = 0;
  bool is_cuda = registered_name == kCudaLibrary;
  if (!is_cuda) factories[count++] = host_factory();
  if (!is_cuda && host_only) return count;
  if (!device_count()) load_driver(kDriverFile);  // without a driver, there is no such device
  if (count < room && device_count()) factories[count++] = cuda_factory();
  return count;
}

}  // namespace epprof::ep

extern "C" void ep_register_host_only(int host_only) { epprof::ep::host_only = host_only != 0; }

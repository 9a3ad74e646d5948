#include "ep/factory.h"

#include <stdlib.h>
#include <string.h>

#include <memory>
#include <string_view>
#include <vector>

#include "ep/interpreter.h"
#include "ep/memory.h"
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

namespace {

// ONNX Runtime passes the options of an execution provider as ep.<lower-case name>.<key>.
constexpr std::string_view kOptionPrefix = "ep.epprofexecutionprovider.";

const char* factory_name(const EpFactory*) { return kProviderName; }
// As for the observer, no selection policy chooses a provider with this vendor on the CPU's device.
const char* vendor(const EpFactory*) { return "Microsoft"; }
uint32_t vendor_id(const EpFactory*) { return 0; }
const char* version(const EpFactory*) { return EPPROF_VERSION; }
bool is_stream_aware(const EpFactory*) { return false; }

Status* get_supported_devices(EpFactory* self, const HardwareDevice* const* devices, size_t count,
                              EpDevice** found, size_t room, size_t* found_count) {
  *found_count = 0;
  return as_status([&] {
    for (size_t i = 0; i < count && room; i++) {
      if (api.device_type(devices[i]) != kCpu) continue;
      // Without this entry, device_id=0 would find the host device.
      KeyValuePairs* made = nullptr;
      rt.create_pairs(&made);
      std::unique_ptr<KeyValuePairs, void (*)(KeyValuePairs*)> metadata(made, rt.release_pairs);
      rt.add_pair(made, kDeviceIdKey, "-1");
      check(api.create_ep_device(self, devices[i], made, nullptr, &found[0]));
      *found_count = 1;
      check(rt.add_allocator_info(found[0], device_memory_info()));
      break;
    }
  });
}

// `device`: the device that ONNX Runtime chose by the option device_id.
void set_device(ep_session_plan* plan, int device, const std::vector<const char*>& keys,
                const std::vector<const char*>& values) {
  std::string asked = "host", chosen = device < 0 ? asked : "cuda:" + std::to_string(device);
  for (size_t i = 0; i < keys.size(); i++) {
    std::string_view key(keys[i]);
    if (key == "device") asked = values[i];
    if (key == "stream") plan->stream = reinterpret_cast<void*>(strtoull(values[i], nullptr, 0));
  }
  if (asked != chosen) {
    throw std::runtime_error("the option device is " + asked + ", but device_id chooses " + chosen +
                             ". epprof_nb.ep.provider(\"" + asked + "\") returns both options");
  }
  plan->device = device;
}

}  // namespace

Status* create_provider(int device, const SessionOptions* options, Ep** ep) {
  *ep = nullptr;
  return as_status([&] {
    KeyValuePairs* entries = nullptr;
    check(rt.config_entries(options, &entries));
    std::unique_ptr<KeyValuePairs, void (*)(KeyValuePairs*)> owner(entries, rt.release_pairs);
    const char *const *keys = nullptr, *const *values = nullptr;
    size_t count = 0;
    rt.pairs(entries, &keys, &values, &count);
    std::vector<const char*> own_keys, own_values;
    for (size_t i = 0; i < count; i++) {
      std::string_view key(keys[i]);
      if (key.substr(0, kOptionPrefix.size()) != kOptionPrefix) continue;
      own_keys.push_back(keys[i] + kOptionPrefix.size());
      own_values.push_back(values[i]);
    }
    auto plan = std::make_unique<ep_session_plan>();
    raise(interpreter.open_session(own_keys.data(), own_values.data(), own_keys.size(),
                                   plan.get()));
    set_device(plan.get(), device, own_keys, own_values);
    *ep = make_provider(std::move(plan));
  });
}

namespace {

Status* create_ep(EpFactory*, const HardwareDevice* const*, const KeyValuePairs* const*, size_t,
                  const SessionOptions* options, const Logger*, Ep** ep) {
  return create_provider(-1, options, ep);
}

void release_ep(EpFactory*, Ep* ep) { release_provider(ep); }

Status* create_allocator(EpFactory*, const MemoryInfo* info, const KeyValuePairs*,
                         Allocator** allocator) {
  return as_status([&] { *allocator = make_allocator(info); });
}

void release_allocator_of(EpFactory*, Allocator* allocator) { release_allocator(allocator); }

Status* create_data_transfer(EpFactory*, DataTransfer** transfer) {
  *transfer = make_data_transfer();
  return nullptr;
}

EpFactory factory = {kApiVersion,       factory_name,         vendor,
                     get_supported_devices, create_ep,        release_ep,
                     vendor_id,         version,              nullptr,
                     create_allocator,  release_allocator_of, create_data_transfer,
                     is_stream_aware,   {}};

}  // namespace

ort::EpFactory* provider_factory() { return &factory; }

}  // namespace epprof::ep

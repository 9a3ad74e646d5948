// The factory of providers on CUDA devices. It is registered separately with ONNX Runtime, so that
// sessions on the host device do not start CUDA.
#include <stdlib.h>
#include <strings.h>

#include <memory>

#include "ep/cuda/memory.h"
#include "ep/cuda/streams.h"
#include "ep/factory.h"
#include "ep/declaration.h"
#include "ep/provider.h"
#include "ort/status.h"

namespace epprof::ep {
namespace {

constexpr char kBusIdKey[] = "pci_bus_id";  // also in the metadata of hardware devices

const char* factory_name(const EpFactory*) { return kProviderName; }
// As for the host device, no selection policy chooses a provider with this vendor on the CPU's
// hardware device. On a GPU's, a policy that prefers GPUs does.
const char* vendor(const EpFactory*) { return "Microsoft"; }
uint32_t vendor_id(const EpFactory*) { return 0; }
const char* version(const EpFactory*) { return EPPROF_VERSION; }

// ONNX Runtime queries this while the thread creates a session, and for streams outside of
// sessions.
thread_local bool leaves_streams_to_others = false;
bool is_stream_aware(const EpFactory*) { return !leaves_streams_to_others; }

void describe(int device, KeyValuePairs* metadata) {
  char name[256] = "", bus_id[32] = "";
  int handle = 0, major = 0, minor = 0;
  size_t bytes = 0;
  check_cuda("cuDeviceGet", cuda.DeviceGet(&handle, device));
  check_cuda("cuDeviceGetName", cuda.DeviceGetName(name, sizeof name, handle));
  check_cuda("cuDeviceGetAttribute", cuda.DeviceGetAttribute(&major, kMajorVersion, handle));
  check_cuda("cuDeviceGetAttribute", cuda.DeviceGetAttribute(&minor, kMinorVersion, handle));
  check_cuda("cuDeviceTotalMem", cuda.DeviceTotalMem(&bytes, handle));
  check_cuda("cuDeviceGetPCIBusId", cuda.DeviceGetPCIBusId(bus_id, sizeof bus_id, handle));
  std::string number = std::to_string(device);
  std::string capability = std::to_string(major) + "." + std::to_string(minor);
  rt.add_pair(metadata, kDeviceIdKey, number.c_str());
  rt.add_pair(metadata, "device", ("cuda:" + number).c_str());
  rt.add_pair(metadata, "name", name);
  rt.add_pair(metadata, "compute_capability", capability.c_str());
  // As ONNX Runtime's plugin of its CUDA provider calls them.
  rt.add_pair(metadata, "cuda_device_name", name);
  rt.add_pair(metadata, "cuda_compute_capability", capability.c_str());
  rt.add_pair(metadata, "total_memory", std::to_string(bytes).c_str());
  rt.add_pair(metadata, kBusIdKey, bus_id);
}

// The hardware device of a GPU, by its place on the PCI bus; that of the CPU if ONNX Runtime lists
// none, as in containers without /sys/class/drm. Null if it lists neither.
const HardwareDevice* hardware_of(const HardwareDevice* const* devices, size_t count,
                                  const char* bus_id) {
  const HardwareDevice* cpu = nullptr;
  for (size_t i = 0; i < count; i++) {
    int32_t type = api.device_type(devices[i]);
    if (type == kCpu && !cpu) cpu = devices[i];
    if (type != kGpu) continue;
    const KeyValuePairs* metadata = api.device_metadata(devices[i]);
    const char* listed = metadata ? rt.pair(metadata, kBusIdKey) : nullptr;
    if (listed && strcasecmp(listed, bus_id) == 0) return devices[i];
  }
  return cpu;
}

Status* get_supported_devices(EpFactory* self, const HardwareDevice* const* devices, size_t count,
                              EpDevice** found, size_t room, size_t* found_count) {
  if (found_count) *found_count = 0;
  if (!found_count || (count && !devices) || (room && !found)) {
    return null_in("GetSupportedDevices");
  }
  return as_status([&] {
    for (int device = 0; device < device_count() && size_t(device) < room; device++) {
      KeyValuePairs* made = nullptr;
      rt.create_pairs(&made);
      std::unique_ptr<KeyValuePairs, void (*)(KeyValuePairs*)> metadata(made, rt.release_pairs);
      KeyValuePairs* option = nullptr;
      rt.create_pairs(&option);
      std::unique_ptr<KeyValuePairs, void (*)(KeyValuePairs*)> options(option, rt.release_pairs);
      rt.add_pair(option, "device_id", std::to_string(device).c_str());
      describe(device, made);
      const HardwareDevice* hardware = hardware_of(devices, count, rt.pair(made, kBusIdKey));
      if (!hardware) return;
      EpDevice*& ep_device = found[*found_count];
      check(api.create_ep_device(self, hardware, made, option, &ep_device));
      ++*found_count;
      check(rt.add_allocator_info(ep_device, cuda_memory_info(device)));
      check(rt.add_allocator_info(ep_device, pinned_memory_info(device)));
    }
  });
}

Status* create_ep(EpFactory*, const HardwareDevice* const*, const KeyValuePairs* const* metadata,
                  size_t count, const SessionOptions* options, const Logger* logger, Ep** ep) {
  const char* number = count ? rt.pair(metadata[0], kDeviceIdKey) : nullptr;
  if (!number) return fail("ONNX Runtime names no CUDA device");
  return create_provider(atoi(number), metadata, count, options, logger, ep);
}

void release_ep(EpFactory*, Ep* ep) { release_provider(ep); }

Status* create_allocator(EpFactory*, const MemoryInfo* info, const KeyValuePairs*,
                         Allocator** allocator) {
  if (!allocator) return null_in("CreateAllocator");
  return as_status([&] { *allocator = make_cuda_allocator(info); });
}

void release_allocator(EpFactory*, Allocator* allocator) { release_cuda_allocator(allocator); }

Status* create_data_transfer(EpFactory*, DataTransfer** transfer) {
  if (!transfer) return null_in("CreateDataTransfer");
  *transfer = make_cuda_transfer();
  return nullptr;
}

Status* create_stream(EpFactory*, const MemoryDevice* device, const KeyValuePairs*,
                      SyncStreamImpl** stream) {
  if (!device || !stream) return null_in("CreateSyncStreamForDevice");
  return as_status([&] {
    *stream = make_cuda_stream(int(rt.memory_device_id(device)), nullptr);
  });
}

EpFactory factory = {kApiVersion,       factory_name,      vendor,
                     get_supported_devices, create_ep,     release_ep,
                     vendor_id,         version,           nullptr,
                     create_allocator,  release_allocator, create_data_transfer,
                     is_stream_aware,   create_stream,     {},
                     count_domains,     list_domains,      {}};

}  // namespace

ort::EpFactory* cuda_factory() { return &factory; }

}  // namespace epprof::ep

extern "C" void ep_leave_streams_to_others(int leave) {
  epprof::ep::leaves_streams_to_others = leave != 0;
}

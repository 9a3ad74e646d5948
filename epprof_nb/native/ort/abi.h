// The parts of ONNX Runtime's C ABI that the observer uses: slots of its two function tables, and
// the structs that a plugin library fills.
//
// The tables are OrtApi and OrtEpApi of ONNX Runtime's public headers (onnxruntime_c_api.h,
// onnxruntime_ep_c_api.h). They only grow at the end, so a slot is valid for every later release.
// tests/unit/test_ort_abi.py compares this file with ort_slots.json, which was extracted from the
// headers. tests/ort/run_matrix.py uses the slots on released wheels. `load_api` checks them at
// each load with a profiling event that it creates and reads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace epprof::ort {

// The first release with profilers of execution providers (OrtEp::CreateProfiler).
constexpr uint32_t kApiVersion = 25;

struct Status;
struct Logger;
struct SessionOptions;
struct RunOptions;
struct HardwareDevice;
struct KeyValuePairs;
struct EpDevice;
struct Graph;
struct GraphSupportInfo;
struct NodeComputeInfo;
struct MemoryInfo;
struct Allocator;
struct DataTransfer;
struct ProfilingEvent;
struct EventsContainer;

struct ApiBase {
  const void* const* (*get_api)(uint32_t version);
  const char* (*get_version)();
};

// OrtApi.
enum ApiSlot : size_t {
  kCreateStatus = 0,
  kGetErrorMessage = 2,
  kReleaseStatus = 93,
  kGetSessionConfigEntry = 238,
  kHardwareDeviceType = 307,
  kGetEpApi = 317,
  kRunOptionsEnableProfiling = 415,
  kRunOptionsDisableProfiling = 416,
};

// OrtEpApi.
enum EpApiSlot : size_t {
  kCreateEpDevice = 0,
  kCreateProfilingEvent = 65,
  kReleaseProfilingEvent = 66,
  kEventCategory = 67,
  kEventName = 68,
  kEventTimestampUs = 69,
  kEventDurationUs = 70,
  kEventArgValue = 71,
  kAddEvents = 72,
};

enum ErrorCode : int32_t { kFail = 1 };                 // OrtErrorCode
enum DeviceType : int32_t { kCpu = 0 };                 // OrtHardwareDeviceType
enum EventCategory : int32_t { kSessionEvent = 0, kNodeEvent = 1, kKernelEvent = 2, kApiEvent = 3 };

struct Ep {
  uint32_t version;
  const char* (*get_name)(const Ep*);
  Status* (*get_capability)(Ep*, const Graph*, GraphSupportInfo*);
  // The unused functions are optional; an EP that claims no node does not need them.
  void* unused[5];       // Compile ... SetDynamicOptions
  Status* (*on_run_start)(Ep*, const RunOptions*);
  Status* (*on_run_end)(Ep*, const RunOptions*, bool sync_stream);
  void* unused_too[6];   // CreateAllocator ... Sync
  Status* (*create_profiler)(Ep*, struct EpProfiler**);
};
static_assert(offsetof(Ep, on_run_start) == 8 * 8, "slot 8 of OrtEp");
static_assert(offsetof(Ep, create_profiler) == 16 * 8, "slot 16 of OrtEp");

struct EpFactory {
  uint32_t version;
  const char* (*get_name)(const EpFactory*);
  const char* (*get_vendor)(const EpFactory*);
  Status* (*get_supported_devices)(EpFactory*, const HardwareDevice* const*, size_t, EpDevice**,
                                   size_t, size_t*);
  Status* (*create_ep)(EpFactory*, const HardwareDevice* const*, const KeyValuePairs* const*,
                       size_t, const SessionOptions*, const Logger*, Ep**);
  void (*release_ep)(EpFactory*, Ep*);
  uint32_t (*get_vendor_id)(const EpFactory*);
  const char* (*get_version)(const EpFactory*);
  void* validate_compiled_model;
  Status* (*create_allocator)(EpFactory*, const MemoryInfo*, const KeyValuePairs*, Allocator**);
  void (*release_allocator)(EpFactory*, Allocator*);
  Status* (*create_data_transfer)(EpFactory*, DataTransfer**);
  bool (*is_stream_aware)(const EpFactory*);
  void* unused[8];  // CreateSyncStreamForDevice ... SelectBestModelCandidate: optional
};
static_assert(sizeof(EpFactory) == 21 * 8, "20 slots of OrtEpFactory");

struct EpProfiler {
  uint32_t version;
  void (*release)(EpProfiler*);
  Status* (*start_profiling)(EpProfiler*, int64_t offset_ns);
  Status* (*start_event)(EpProfiler*, uint64_t id);
  Status* (*stop_event)(EpProfiler*, uint64_t id, const ProfilingEvent*);
  Status* (*end_profiling)(EpProfiler*, EventsContainer*);
};

}  // namespace epprof::ort

// The parts of ONNX Runtime's C ABI that the observer and the provider of Python kernels use: slots
// of its two function tables, and the structs that a plugin library fills.
//
// The tables are OrtApi and OrtEpApi of ONNX Runtime's public headers (onnxruntime_c_api.h,
// onnxruntime_ep_c_api.h). They only grow at the end, so a slot is valid for every later release.
// tests/unit/project/test_ort_abi.py compares this file with ort_slots.json, which was extracted from the
// headers. tests/run_matrix.py uses the slots on released wheels. `load_api` checks them at
// each load with a profiling event that it creates and reads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace epprof::ort {

// The first release with profilers of execution providers (OrtEp::CreateProfiler).
constexpr uint32_t kApiVersion = 25;
// The first releases that capture graphs of plugin providers, and that release them.
constexpr uint32_t kGraphApiVersion = 26;
constexpr uint32_t kReleaseGraphApiVersion = 27;

struct Status;
struct Logger;
struct Session;
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
struct MemoryDevice;
struct Node;
struct OpAttr;
struct ValueInfo;
struct Value;
struct SyncStream;
struct KernelRegistry;
struct KernelDefBuilder;
struct KernelDef;
struct KernelInfo;
struct KernelContext;
struct DataType;
struct TypeInfo;
struct TensorInfo;
struct CustomOpDomain;
struct ShapeInferContext;
struct SyncStreamImpl;
struct SyncNotificationImpl;

struct ApiBase {
  const void* const* (*get_api)(uint32_t version);
  const char* (*get_version)();
};

// OrtApi.
enum ApiSlot : size_t {
  kCreateStatus = 0,
  kGetErrorMessage = 2,
  kCreateCustomOpDomain = 26,
  kCustomOpDomain_Add = 27,
  kAddCustomOpDomain = 28,
  kGetTensorMutableData = 51,
  kCastTypeInfoToTensorInfo = 55,
  kGetTensorElementType = 60,
  kGetDimensionsCount = 61,
  kGetDimensions = 62,
  kAllocatorFree = 76,
  kGetAllocatorWithDefaultOptions = 78,
  kKernelInfoGetAttribute_float = 85,
  kKernelInfoGetAttribute_int64 = 86,
  kKernelInfoGetAttribute_string = 87,
  kKernelContext_GetInputCount = 88,
  kKernelContext_GetOutputCount = 89,
  kKernelContext_GetInput = 90,
  kKernelContext_GetOutput = 91,
  kReleaseStatus = 93,
  kReleaseMemoryInfo = 94,
  kReleaseValue = 96,
  kReleaseTypeInfo = 98,
  kCreateAllocator = 131,
  kReleaseAllocator = 132,
  kKernelInfoGetAttributeArray_float = 162,
  kKernelInfoGetAttributeArray_int64 = 163,
  kKernelContext_GetGPUComputeStream = 193,
  kKernelInfo_GetOutputCount = 231,
  kKernelInfo_GetOutputName = 233,
  kKernelInfo_GetOutputTypeInfo = 235,
  kKernelInfoGetAttribute_tensor = 236,
  kKernelInfo_GetNodeName = 244,
  kLogger_LogMessage = 247,
  kReadOpAttr = 272,
  kGetValueInfoName = 289,
  kCreateKeyValuePairs = 295,
  kAddKeyValuePair = 296,
  kGetKeyValue = 297,
  kGetKeyValuePairs = 298,
  kReleaseKeyValuePairs = 300,
  kHardwareDeviceType = 307,
  kHardwareDeviceMetadata = 311,
  kGetEpApi = 317,
  kGetTensorSizeInBytes = 318,
  kAllocatorGetStats = 319,
  kCreateMemoryInfo_V2 = 320,
  kValueInfo_IsConstantInitializer = 331,
  kGraph_GetNumNodes = 344,
  kGraph_GetNodes = 345,
  kNode_GetId = 348,
  kNode_GetName = 349,
  kNode_GetOperatorType = 350,
  kNode_GetDomain = 351,
  kNode_GetSinceVersion = 352,
  kNode_GetNumInputs = 353,
  kNode_GetInputs = 354,
  kNode_GetNumOutputs = 355,
  kNode_GetOutputs = 356,
  kNode_GetNumAttributes = 359,
  kNode_GetAttributes = 360,
  kOpAttr_GetType = 363,
  kOpAttr_GetName = 364,
  kGetRunConfigEntry = 373,
  kGetTensorData = 378,
  kGetSessionOptionsConfigEntries = 379,
  kSyncStream_GetHandle = 384,
  kTensorTypeAndShape_HasShape = 390,
  kGetTensorElementTypeAndShapeDataReference = 414,
  kRunOptionsEnableProfiling = 415,
  kRunOptionsDisableProfiling = 416,
  kKernelInfoGetAttributeArray_string = 417,
};

// OrtEpApi.
enum EpApiSlot : size_t {
  kCreateEpDevice = 0,
  kEpGraphSupportInfo_AddSingleNode = 3,
  kEpDevice_AddAllocatorInfo = 5,
  kMemoryInfo_GetMemoryDevice = 6,
  kValue_GetMemoryDevice = 7,
  kMemoryDevice_GetDeviceType = 9,
  kMemoryDevice_GetMemoryType = 10,
  kMemoryDevice_GetVendorId = 11,
  kMemoryDevice_GetDeviceId = 12,
  kCreateKernelRegistry = 18,
  kReleaseKernelRegistry = 19,
  kKernelRegistry_AddKernel = 20,
  kCreateKernelDefBuilder = 21,
  kReleaseKernelDefBuilder = 22,
  kKernelDefBuilder_SetOperatorType = 23,
  kKernelDefBuilder_SetDomain = 24,
  kKernelDefBuilder_SetSinceVersion = 25,
  kKernelDefBuilder_SetExecutionProvider = 26,
  kKernelDefBuilder_SetInputMemType = 27,
  kKernelDefBuilder_SetOutputMemType = 28,
  kKernelDefBuilder_AddTypeConstraint = 29,
  kKernelDefBuilder_AddInputOutputAliases = 30,
  kKernelDefBuilder_Build = 32,
  kReleaseKernelDef = 33,
  kGetTensorDataType = 40,
  kEpGraphSupportInfo_LookUpKernel = 41,
  kKernelInfo_GetEp = 43,
  kCreateIfKernel = 45,
  kCreateLoopKernel = 46,
  kCreateScanKernel = 47,
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
enum DeviceType : int32_t { kCpu = 0, kGpu = 1 };       // OrtHardwareDeviceType
enum MemoryDeviceType : int32_t { kCpuMemory = 0, kGpuMemory = 1 };  // OrtMemoryInfoDeviceType
enum DeviceMemoryType : int32_t { kDefaultMemory = 0, kHostAccessible = 5 };
enum AllocatorType : int32_t { kDeviceAllocator = 0 };  // OrtAllocatorType
// OrtGraphCaptureNodeAssignmentPolicy
enum CapturePolicy : int32_t { kAllNodesOnEp = 0, kAllowCpuForShapes = 1 };
enum LoggingLevel : int32_t { kInfo = 1, kWarning = 2 };  // OrtLoggingLevel
enum MemType : int32_t { kCpuInput = -2, kCpuOutput = -1 };  // OrtMemType
// OrtOpAttrType
enum AttrType : int32_t { kInt = 1, kInts, kFloat, kFloats, kString, kStrings, kGraph, kTensor };
enum EventCategory : int32_t { kSessionEvent = 0, kNodeEvent = 1, kKernelEvent = 2, kApiEvent = 3 };

struct Ep {
  uint32_t version;
  const char* (*get_name)(const Ep*);
  Status* (*get_capability)(Ep*, const Graph*, GraphSupportInfo*);
  // The unused functions are optional; an EP that claims no node does not need the others either.
  void* unused[2];       // Compile, ReleaseNodeComputeInfos
  Status* (*get_preferred_data_layout)(Ep*, int32_t* layout);
  Status* (*should_convert_data_layout_for_op)(Ep*, const char* domain, const char* op_type,
                                               int32_t layout, int* should_convert);
  void* set_dynamic_options;
  Status* (*on_run_start)(Ep*, const RunOptions*);
  Status* (*on_run_end)(Ep*, const RunOptions*, bool sync_stream);
  void* create_allocator;
  Status* (*create_sync_stream_for_device)(Ep*, const MemoryDevice*, SyncStreamImpl**);
  void* get_compiled_model_compatibility_info;
  Status* (*get_kernel_registry)(Ep*, const KernelRegistry**);
  void* is_concurrent_run_supported;
  Status* (*sync)(Ep*);
  Status* (*create_profiler)(Ep*, struct EpProfiler**);
  // From release 1.26.
  bool (*is_graph_capture_enabled)(const Ep*);
  bool (*is_graph_captured)(const Ep*, int graph_annotation_id);
  Status* (*replay_graph)(Ep*, int graph_annotation_id);
  int32_t (*get_graph_capture_node_assignment_policy)(const Ep*);
  // From release 1.27.
  void* unused_later[3];  // GetAvailableResource ... GetDefaultMemoryDevice
  Status* (*release_captured_graph)(Ep*, int graph_annotation_id);
};
static_assert(offsetof(Ep, get_preferred_data_layout) == 5 * 8, "slot 5 of OrtEp");
static_assert(offsetof(Ep, on_run_start) == 8 * 8, "slot 8 of OrtEp");
static_assert(offsetof(Ep, create_profiler) == 16 * 8, "slot 16 of OrtEp");
static_assert(offsetof(Ep, release_captured_graph) == 24 * 8, "slot 24 of OrtEp");

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
  Status* (*create_sync_stream_for_device)(EpFactory*, const MemoryDevice*, const KeyValuePairs*,
                                           SyncStreamImpl**);
  void* unused[2];  // GetHardwareDeviceIncompatibilityDetails, CreateExternalResourceImporterForDevice
  // Asked if the provider was chosen by device.
  Status* (*get_num_custom_op_domains)(EpFactory*, size_t*);
  Status* (*get_custom_op_domains)(EpFactory*, CustomOpDomain**, size_t);
  void* unused_later[3];  // InitGraphicsInterop ... SelectBestModelCandidate
};
static_assert(sizeof(EpFactory) == 21 * 8, "20 slots of OrtEpFactory");

struct Allocator {
  uint32_t version;
  void* (*alloc)(Allocator*, size_t);
  void (*free)(Allocator*, void*);
  const MemoryInfo* (*info)(const Allocator*);
  void* (*reserve)(Allocator*, size_t);
  Status* (*get_stats)(const Allocator*, KeyValuePairs**);  // optional, as is what follows
  void* (*alloc_on_stream)(Allocator*, size_t, SyncStream*);
  Status* (*shrink)(Allocator*);
};

struct DataTransfer {
  uint32_t version;
  void (*release)(DataTransfer*);
  bool (*can_copy)(const DataTransfer*, const MemoryDevice* source, const MemoryDevice* target);
  Status* (*copy_tensors)(DataTransfer*, const Value** sources, Value** targets, SyncStream**,
                          size_t count);
};

struct SyncNotificationImpl {
  uint32_t version;
  void (*release)(SyncNotificationImpl*);
  Status* (*activate)(SyncNotificationImpl*);
  Status* (*wait_on_device)(SyncNotificationImpl*, SyncStream* consumer);
  Status* (*wait_on_host)(SyncNotificationImpl*);
};

struct SyncStreamImpl {
  uint32_t version;
  void (*release)(SyncStreamImpl*);
  void* (*get_handle)(SyncStreamImpl*);
  Status* (*create_notification)(SyncStreamImpl*, SyncNotificationImpl**);
  Status* (*flush)(SyncStreamImpl*);
  Status* (*on_session_run_end)(SyncStreamImpl*);
};

struct KernelImpl {
  uint32_t version;
  uint32_t flags;
  Status* (*compute)(KernelImpl*, KernelContext*);
  void (*release)(KernelImpl*);
  void* pre_pack_weight;
  void* set_shared_pre_packed_weight;
};

using KernelCreateFunction = Status* (*)(void* state, const KernelInfo*, KernelImpl**);

struct LoopKernelHelper {
  uint32_t version;
  void (*release)(LoopKernelHelper*);
  Status* (*concat_output)(LoopKernelHelper*, void* stream, const Value* const* values,
                           size_t count, void* output, size_t bytes);
};

struct ScanKernelHelper {
  uint32_t version;
  void (*release)(ScanKernelHelper*);
  Status* (*transpose)(ScanKernelHelper*, const size_t* permutation, size_t rank,
                       const Value* input, SyncStream*, Value* output);
};

// An operator of a domain without a schema in ONNX Runtime.
struct CustomOp {
  uint32_t version;
  void* (*create_kernel)(const CustomOp*, const void* api, const KernelInfo*);
  const char* (*get_name)(const CustomOp*);
  const char* (*get_execution_provider_type)(const CustomOp*);
  int32_t (*get_input_type)(const CustomOp*, size_t index);
  size_t (*get_input_type_count)(const CustomOp*);
  int32_t (*get_output_type)(const CustomOp*, size_t index);
  size_t (*get_output_type_count)(const CustomOp*);
  void (*kernel_compute)(void* kernel, KernelContext*);
  void (*kernel_destroy)(void* kernel);
  int32_t (*get_input_characteristic)(const CustomOp*, size_t index);
  int32_t (*get_output_characteristic)(const CustomOp*, size_t index);
  int32_t (*get_input_memory_type)(const CustomOp*, size_t index);
  int (*get_variadic_input_min_arity)(const CustomOp*);
  int (*get_variadic_input_homogeneity)(const CustomOp*);
  int (*get_variadic_output_min_arity)(const CustomOp*);
  int (*get_variadic_output_homogeneity)(const CustomOp*);
  Status* (*create_kernel_v2)(const CustomOp*, const void* api, const KernelInfo*, void** kernel);
  Status* (*kernel_compute_v2)(void* kernel, KernelContext*);
  Status* (*infer_output_shape_fn)(const CustomOp*, ShapeInferContext*);
  int (*get_start_version)(const CustomOp*);
  int (*get_end_version)(const CustomOp*);
  void* unused[4];  // GetMayInplace ... ReleaseAliasMap: optional
};

struct EpProfiler {
  uint32_t version;
  void (*release)(EpProfiler*);
  Status* (*start_profiling)(EpProfiler*, int64_t offset_ns);
  Status* (*start_event)(EpProfiler*, uint64_t id);
  Status* (*stop_event)(EpProfiler*, uint64_t id, const ProfilingEvent*);
  Status* (*end_profiling)(EpProfiler*, EventsContainer*);
};

}  // namespace epprof::ort

// NVIDIA's driver library, opened at run time, and the devices that it reports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace epprof::ep {

using CudaContext = struct CudaContext_*;
using CudaStream = struct CudaStream_*;
using CudaEvent = struct CudaEvent_*;
using CudaModule = struct CudaModule_*;
using CudaFunction = struct CudaFunction_*;
using CudaGraphHandle = struct CudaGraph_*;
using CudaGraphNode = struct CudaGraphNode_*;
using CudaGraphExec = struct CudaGraphExec_*;

// CUDA_MEMCPY2D.
struct Copy2D {
  size_t source_x, source_y;
  uint32_t source_type;
  const void* source_host;
  uint64_t source_device;
  void* source_array;
  size_t source_pitch;
  size_t target_x, target_y;
  uint32_t target_type;
  void* target_host;
  uint64_t target_device;
  void* target_array;
  size_t target_pitch;
  size_t width, height;
};

constexpr int kSuccess = 0;                            // CUresult
constexpr unsigned kNonBlocking = 1;                   // CU_STREAM_NON_BLOCKING
constexpr unsigned kDisableTiming = 2;                 // CU_EVENT_DISABLE_TIMING
constexpr unsigned kPortable = 1;                      // CU_MEMHOSTALLOC_PORTABLE
constexpr uint32_t kDeviceMemory = 2;                  // CU_MEMORYTYPE_DEVICE
constexpr int kMemoryType = 2;                         // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr int kDeviceOrdinal = 9;                      // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
constexpr int kMajorVersion = 75;                      // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
constexpr int kMinorVersion = 76;                      // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
constexpr int kThreadLocal = 1;                        // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
constexpr int kRelaxed = 2;                            // CU_STREAM_CAPTURE_MODE_RELAXED
constexpr int kCaptureActive = 1;                      // CU_STREAM_CAPTURE_STATUS_ACTIVE

struct Driver {
  int (*Init)(unsigned flags);
  int (*GetErrorName)(int, const char**);
  int (*GetErrorString)(int, const char**);
  int (*DeviceGetCount)(int*);
  int (*DeviceGet)(int* device, int ordinal);
  int (*DeviceGetName)(char* name, int room, int device);
  int (*DeviceGetAttribute)(int* value, int attribute, int device);
  int (*DeviceTotalMem)(size_t* bytes, int device);
  int (*DeviceGetPCIBusId)(char* id, int room, int device);
  int (*DevicePrimaryCtxRetain)(CudaContext*, int device);
  int (*CtxPushCurrent)(CudaContext);
  int (*CtxPopCurrent)(CudaContext*);
  int (*CtxSynchronize)();
  int (*MemGetInfo)(size_t* free, size_t* total);
  int (*MemAlloc)(uint64_t*, size_t);
  int (*MemFree)(uint64_t);
  int (*MemHostAlloc)(void**, size_t, unsigned flags);
  int (*MemFreeHost)(void*);
  int (*PointerGetAttribute)(void* value, int attribute, uint64_t pointer);
  int (*MemcpyAsync)(uint64_t target, uint64_t source, size_t, CudaStream);
  int (*Memcpy2DAsync)(const Copy2D*, CudaStream);
  int (*ModuleLoadData)(CudaModule*, const void* image);
  int (*ModuleUnload)(CudaModule);
  int (*ModuleGetFunction)(CudaFunction*, CudaModule, const char* name);
  int (*LaunchKernel)(CudaFunction, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                      CudaStream, void** parameters, void** extra);
  int (*StreamCreate)(CudaStream*, unsigned flags);
  int (*StreamDestroy)(CudaStream);
  int (*StreamSynchronize)(CudaStream);
  int (*StreamQuery)(CudaStream);
  int (*StreamWaitEvent)(CudaStream, CudaEvent, unsigned flags);
  int (*StreamIsCapturing)(CudaStream, int* status);
  int (*EventCreate)(CudaEvent*, unsigned flags);
  int (*EventDestroy)(CudaEvent);
  int (*EventRecord)(CudaEvent, CudaStream);
  int (*EventQuery)(CudaEvent);
  int (*EventSynchronize)(CudaEvent);
  int (*ThreadExchangeStreamCaptureMode)(int* mode);
  int (*StreamBeginCapture)(CudaStream, int mode);
  int (*StreamEndCapture)(CudaStream, CudaGraphHandle*);
  int (*StreamGetCaptureInfo)(CudaStream, int* status, uint64_t* id, CudaGraphHandle*,
                              const CudaGraphNode** last, size_t* last_count);
  int (*GraphGetNodes)(CudaGraphHandle, CudaGraphNode*, size_t* count);
  int (*GraphInstantiateWithFlags)(CudaGraphExec*, CudaGraphHandle, unsigned long long flags);
  int (*GraphLaunch)(CudaGraphExec, CudaStream);
  int (*GraphExecDestroy)(CudaGraphExec);
  int (*GraphDestroy)(CudaGraphHandle);
};

extern Driver cuda;  // valid once `load_driver` has succeeded

// Opens the driver and counts its devices. Returns an empty string or an error message. Later calls
// return the result of the first success.
std::string load_driver(const char* path);
constexpr const char* kDriverFile = "libcuda.so.1";
int device_count();  // 0 unless the driver was opened
bool is_forked();    // in a child process, where no function of the driver works
int device_at(const void* address);  // device of any allocator's memory; -1: none

std::string cuda_error(const char* function, int result);  // the message
void check_cuda(const char* function, int result);         // throws it

// Makes a device's primary context current on this thread, and restores the previous one at the
// end.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device);  // throws
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
};

// Lets this thread make calls that another thread's stream capture would forbid, such as
// cuMemAlloc.
class DuringCaptures {
 public:
  DuringCaptures() { cuda.ThreadExchangeStreamCaptureMode(&mode_); }
  ~DuringCaptures() { cuda.ThreadExchangeStreamCaptureMode(&mode_); }

 private:
  int mode_ = kRelaxed;
};

bool is_capturing(CudaStream);

}  // namespace epprof::ep

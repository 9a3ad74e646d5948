#include "ep/cuda/driver.h"

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "core/dynamic_library.h"
#include "core/fork.h"

namespace epprof::ep {

Driver cuda{};

namespace {

std::mutex driver_mutex;
bool loaded;
int count;
// Primary contexts, never released because the user's arrays and streams may be in them.
std::vector<CudaContext>& contexts = *new std::vector<CudaContext>;

// The driver works only in the process that opened it, not in its children.
std::atomic<bool> in_child{false};
ResetInChild child([] { in_child = loaded; });

CudaContext context_of(int device) {
  if (is_forked()) {
    throw std::runtime_error(
        "CUDA cannot be used in a child process of a fork. Start the process with "
        "multiprocessing.get_context(\"spawn\")");
  }
  std::lock_guard lock(driver_mutex);
  CudaContext& context = contexts.at(size_t(device));
  if (!context) {
    int handle = 0;
    check_cuda("cuDeviceGet", cuda.DeviceGet(&handle, device));
    check_cuda("cuDevicePrimaryCtxRetain", cuda.DevicePrimaryCtxRetain(&context, handle));
  }
  return context;
}

}  // namespace

std::string load_driver(const char* path) {
  std::lock_guard lock(driver_mutex);
  if (loaded) return "";
  DynamicLibrary resolve(path, RTLD_LOCAL);
  if (!resolve.handle) return dlerror();
  Driver d{};
  resolve("cuInit", d.Init);
  resolve("cuGetErrorName", d.GetErrorName);
  resolve("cuGetErrorString", d.GetErrorString);
  resolve("cuDeviceGetCount", d.DeviceGetCount);
  resolve("cuDeviceGet", d.DeviceGet);
  resolve("cuDeviceGetName", d.DeviceGetName);
  resolve("cuDeviceGetAttribute", d.DeviceGetAttribute);
  resolve("cuDeviceTotalMem_v2", d.DeviceTotalMem);
  resolve("cuDeviceGetPCIBusId", d.DeviceGetPCIBusId);
  resolve("cuDevicePrimaryCtxRetain", d.DevicePrimaryCtxRetain);
  resolve("cuCtxPushCurrent_v2", d.CtxPushCurrent);
  resolve("cuCtxPopCurrent_v2", d.CtxPopCurrent);
  resolve("cuCtxSynchronize", d.CtxSynchronize);
  resolve("cuMemGetInfo_v2", d.MemGetInfo);
  resolve("cuMemAlloc_v2", d.MemAlloc);
  resolve("cuMemFree_v2", d.MemFree);
  resolve("cuMemHostAlloc", d.MemHostAlloc);
  resolve("cuMemFreeHost", d.MemFreeHost);
  resolve("cuPointerGetAttribute", d.PointerGetAttribute);
  resolve("cuMemcpyAsync", d.MemcpyAsync);
  resolve("cuMemcpy2DAsync_v2", d.Memcpy2DAsync);
  resolve("cuModuleLoadData", d.ModuleLoadData);
  resolve("cuModuleUnload", d.ModuleUnload);
  resolve("cuModuleGetFunction", d.ModuleGetFunction);
  resolve("cuLaunchKernel", d.LaunchKernel);
  resolve("cuStreamCreate", d.StreamCreate);
  resolve("cuStreamDestroy_v2", d.StreamDestroy);
  resolve("cuStreamSynchronize", d.StreamSynchronize);
  resolve("cuStreamQuery", d.StreamQuery);
  resolve("cuStreamWaitEvent", d.StreamWaitEvent);
  resolve("cuStreamIsCapturing", d.StreamIsCapturing);
  resolve("cuEventCreate", d.EventCreate);
  resolve("cuEventDestroy_v2", d.EventDestroy);
  resolve("cuEventRecord", d.EventRecord);
  resolve("cuEventQuery", d.EventQuery);
  resolve("cuEventSynchronize", d.EventSynchronize);
  resolve("cuThreadExchangeStreamCaptureMode", d.ThreadExchangeStreamCaptureMode);
  resolve("cuStreamBeginCapture_v2", d.StreamBeginCapture);
  resolve("cuStreamEndCapture", d.StreamEndCapture);
  resolve("cuStreamGetCaptureInfo_v2", d.StreamGetCaptureInfo);  // _v3 needs a driver of CUDA 12.3
  resolve("cuGraphGetNodes", d.GraphGetNodes);
  resolve("cuGraphInstantiateWithFlags", d.GraphInstantiateWithFlags);
  resolve("cuGraphLaunch", d.GraphLaunch);
  resolve("cuGraphExecDestroy", d.GraphExecDestroy);
  resolve("cuGraphDestroy", d.GraphDestroy);
  if (!resolve.missing.empty()) {
    return std::string(path) + " has no function " + resolve.missing;
  }
  cuda = d;
  int devices = 0;
  if (int failed = cuda.Init(0)) return cuda_error("cuInit", failed);
  if (int failed = cuda.DeviceGetCount(&devices)) return cuda_error("cuDeviceGetCount", failed);
  if (!devices) return "the driver reports no device";
  contexts.resize(size_t(devices));
  count = devices;
  loaded = true;
  return "";
}

int device_count() { return count; }
bool is_forked() { return in_child.load(std::memory_order_relaxed); }

int device_at(const void* address) {
  if (!device_count() || is_forked()) return -1;
  uint32_t type = 0;
  int device = -1;
  auto pointer = uint64_t(reinterpret_cast<uintptr_t>(address));
  if (cuda.PointerGetAttribute(&type, kMemoryType, pointer) != kSuccess) return -1;
  if (type != kDeviceMemory) return -1;
  return cuda.PointerGetAttribute(&device, kDeviceOrdinal, pointer) == kSuccess ? device : -1;
}

std::string cuda_error(const char* function, int result) {
  const char *name = nullptr, *text = nullptr;
  if (cuda.GetErrorName(result, &name) || !name) name = "an unknown error";
  if (cuda.GetErrorString(result, &text) || !text) text = "the driver does not describe it";
  return std::string(function) + " failed with " + name + ": " + text;
}

void check_cuda(const char* function, int result) {
  if (result != kSuccess) throw std::runtime_error(cuda_error(function, result));
}

CurrentDevice::CurrentDevice(int device) {
  check_cuda("cuCtxPushCurrent", cuda.CtxPushCurrent(context_of(device)));
}

CurrentDevice::~CurrentDevice() {
  CudaContext popped = nullptr;
  cuda.CtxPopCurrent(&popped);
}

bool is_capturing(CudaStream stream) {
  int status = 0;
  return cuda.StreamIsCapturing(stream, &status) != kSuccess || status != 0;
}

}  // namespace epprof::ep

// A stand-in for NVIDIA's driver library: devices, memory and streams of the process itself.
//
// Streams run their work on threads of their own, in order, and later than the call. Device memory
// is not accessible to the host: only the work of a stream opens it, so that a stray access ends the
// process. Misuse that the real driver might let pass is noted: see fake_misuse.
#include <signal.h>
#include <stdio.h>

#include "state.h"

using namespace fake;

namespace {

void (*previous_handler)(int) = SIG_DFL;

void on_fault(int) {
  static const char text[] = "fake driver: the host has used an address in device memory\n";
  if (write(2, text, sizeof text - 1)) {
  }
  signal(SIGSEGV, previous_handler);  // pytest's shows where Python was
  raise(SIGSEGV);
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
  std::lock_guard lock(mutex);
  initialized = true;
  previous_handler = signal(SIGSEGV, on_fault);
  return enter("cuInit");
}
int cuGetErrorName(int error, const char** name) {
  static const std::map<int, const char*> names = {
      {0, "CUDA_SUCCESS"}, {kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
      {kNoMemory, "CUDA_ERROR_OUT_OF_MEMORY"}, {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT"},
      {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE"},
      {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {kCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
      {kCaptureInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
      {kCaptureUnjoined, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"},
      {kCapturedEvent, "CUDA_ERROR_CAPTURED_EVENT"},
      {kCaptureWrongThread, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"}};
  auto found = names.find(error);
  *name = found == names.end() ? nullptr : found->second;
  return found == names.end() ? kInvalidValue : 0;
}
int cuGetErrorString(int error, const char** text) {
  *text = error == kIllegalAddress ? "an illegal memory access was encountered" : "an error";
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = kDevices;
  std::lock_guard lock(mutex);
  return enter("cuDeviceGetCount");
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal < 0 || ordinal >= kDevices ? kInvalidDevice : 0;
}
int cuDeviceGetName(char* name, int room, int device) {
  snprintf(name, size_t(room), "Stand-in %d", device);
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 9 : attribute == 76 ? 0 : -1;
  return *value < 0 ? kInvalidValue : 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = size_t(1) << 30;
  return 0;
}
int cuDeviceGetPCIBusId(char* id, int room, int device) {
  snprintf(id, size_t(room), "0000:%02X:00.0", device + 1);
  return 0;
}
int cuDevicePrimaryCtxRetain(Context** context, int device) {
  std::lock_guard lock(mutex);
  if (int failed = enter("cuDevicePrimaryCtxRetain")) return failed;
  if (!contexts[device]) contexts[device] = new Context{device, {}, nullptr};
  *context = contexts[device];
  return 0;
}
int cuCtxPushCurrent_v2(Context* context) {
  std::lock_guard lock(mutex);
  if (int failed = enter("cuCtxPushCurrent")) return failed;
  current.push_back(context);
  return 0;
}
int cuCtxPopCurrent_v2(Context** context) {
  if (current.empty()) return kInvalidContext;
  *context = current.back();
  current.pop_back();
  return 0;
}
int cuCtxGetDevice(int* device) {
  if (current.empty()) return kInvalidContext;
  *device = current.back()->device;
  return 0;
}
int cuCtxSynchronize() {
  std::unique_lock lock(mutex);
  if (int failed = enter("cuCtxSynchronize")) return failed;
  if (current.empty()) return kInvalidContext;
  Context* context = current.back();
  for (Stream* stream : context->streams) {
    if (stream->capturing) misuse("cuCtxSynchronize during a capture");
  }
  for (Capture* capture : captures) {
    if (capture->origin->context != context) continue;
    misuse("cuCtxSynchronize during a capture");
    capture->invalid = true;
    return kCaptureUnsupported;
  }
  wait_for(context, lock);
  return sticky;
}
int cuMemGetInfo_v2(size_t* free, size_t* total) {
  std::lock_guard lock(mutex);
  if (current.empty()) return kInvalidContext;
  int device = current.back()->device;
  *total = total_bytes[device];
  *free = total_bytes[device] - used_bytes[device];
  return 0;
}

}  // extern "C"

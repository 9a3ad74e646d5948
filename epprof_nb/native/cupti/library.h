// The functions of libcupti and libcuda that the recording calls. Python finds the libraries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace epprof {

using CUptiResult = uint32_t;
using CUcontext = void*;
using CUstream = void*;

using CuptiCallback = void (*)(void* user, uint32_t domain, uint32_t cbid, const void* data);
using CuptiRequested = void (*)(uint8_t** buffer, size_t* size, size_t* max_records);
using CuptiCompleted = void (*)(CUcontext context, uint32_t stream, uint8_t* buffer, size_t size,
                                size_t valid);

struct Cupti {
  CUptiResult (*GetVersion)(uint32_t*);
  CUptiResult (*GetResultString)(CUptiResult, const char**);
  CUptiResult (*ActivityRegisterCallbacks)(CuptiRequested, CuptiCompleted);
  CUptiResult (*ActivityRegisterTimestampCallback)(uint64_t (*)());
  CUptiResult (*ActivityEnable)(uint32_t kind);
  CUptiResult (*ActivityDisable)(uint32_t kind);
  CUptiResult (*ActivitySetAttribute)(uint32_t attribute, size_t* bytes, void* value);
  CUptiResult (*ActivityFlushAll)(uint32_t flag);
  CUptiResult (*ActivityGetNextRecord)(uint8_t* buffer, size_t valid, void** record);
  CUptiResult (*ActivityGetNumDroppedRecords)(CUcontext, uint32_t stream, size_t* dropped);
  CUptiResult (*ActivityPushExternalCorrelationId)(uint32_t kind, uint64_t id);
  CUptiResult (*ActivityPopExternalCorrelationId)(uint32_t kind, uint64_t* last);
  CUptiResult (*Subscribe)(void** subscriber, CuptiCallback, void* user);
  CUptiResult (*Unsubscribe)(void* subscriber);
  CUptiResult (*EnableCallback)(uint32_t enable, void* subscriber, uint32_t domain, uint32_t cbid);
  CUptiResult (*GetCallbackName)(uint32_t domain, uint32_t cbid, const char** name);
  CUptiResult (*SetThreadIdType)(uint32_t type);
  CUptiResult (*ActivityEnableRuntimeApi)(uint32_t cbid, uint8_t enable);  // null before CUDA 12.5
  CUptiResult (*ActivityEnableDriverApi)(uint32_t cbid, uint8_t enable);   // likewise
  CUptiResult (*ActivityEnableAllocationSource)(uint8_t enable);           // null before CUDA 12.6
  CUptiResult (*GetTimestamp)(uint64_t*);
  CUptiResult (*GetContextId)(CUcontext, uint32_t* id);
  CUptiResult (*GetStreamIdEx)(CUcontext, CUstream, uint8_t per_thread, uint32_t* id);
  CUptiResult (*GetGraphNodeId)(void* node, uint64_t* id);
  CUptiResult (*GetGraphId)(void* graph, uint32_t* id);
  CUptiResult (*GetGraphExecId)(void* executable, uint32_t* id);  // null before CUDA 12.3
  CUptiResult (*Finalize)();
  // Functions of the driver, to synchronize the contexts of a session.
  int (*CtxPushCurrent)(CUcontext);
  int (*CtxPopCurrent)(CUcontext*);
  int (*CtxSynchronize)();
  int (*CtxGetCurrent)(CUcontext*);
  // Functions of the driver, for the first launch of a session.
  int (*CtxGetId)(CUcontext, uint64_t*);  // null before CUDA 12.0
  int (*MemAlloc)(uint64_t* address, size_t bytes);
  int (*MemFree)(uint64_t address);
  int (*MemsetD8Async)(uint64_t address, unsigned char value, size_t count, CUstream);
  int (*StreamCreate)(CUstream*, uint32_t flags);
  int (*ThreadExchangeStreamCaptureMode)(int* mode);
  int (*StreamGetCtx)(CUstream, CUcontext*);
  int (*StreamIsCapturing)(CUstream, uint32_t* status);
  int (*GetErrorName)(int, const char**);
  int (*GetErrorString)(int, const char**);
};

extern Cupti cupti;

// Loads both libraries. Returns an empty string or an error message. Idempotent for the same path.
// Refuses a second libcupti, because the driver has one hook for all.
std::string load_cupti(const char* path, const char* driver_path);
std::string cupti_error(CUptiResult result);

}  // namespace epprof

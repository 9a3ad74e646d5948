#include "cupti/library.h"

#include "core/dynamic_library.h"

namespace epprof {

Cupti cupti{};

namespace {

std::string loaded_path;

}  // namespace

std::string load_cupti(const char* path, const char* driver_path) {
  if (loaded_path == path) return "";
  if (!loaded_path.empty()) {
    return "libcupti is already loaded from " + loaded_path +
           ". A process can use only one: restart it to use " + path + ".";
  }
  // The driver first: some versions of libcupti crash if they cannot find it.
  DynamicLibrary driver(driver_path, RTLD_GLOBAL);
  if (!driver.handle) return dlerror();
  DynamicLibrary library(path, RTLD_LOCAL);
  if (!library.handle) return dlerror();
  Cupti c{};
  library("cuptiGetVersion", c.GetVersion);
  library("cuptiGetResultString", c.GetResultString);
  library("cuptiActivityRegisterCallbacks", c.ActivityRegisterCallbacks);
  library("cuptiActivityRegisterTimestampCallback", c.ActivityRegisterTimestampCallback);
  library("cuptiActivityEnable", c.ActivityEnable);
  library("cuptiActivityDisable", c.ActivityDisable);
  library("cuptiActivitySetAttribute", c.ActivitySetAttribute);
  library("cuptiActivityFlushAll", c.ActivityFlushAll);
  library("cuptiActivityGetNextRecord", c.ActivityGetNextRecord);
  library("cuptiActivityGetNumDroppedRecords", c.ActivityGetNumDroppedRecords);
  library("cuptiActivityPushExternalCorrelationId", c.ActivityPushExternalCorrelationId);
  library("cuptiActivityPopExternalCorrelationId", c.ActivityPopExternalCorrelationId);
  library("cuptiSubscribe", c.Subscribe);
  library("cuptiUnsubscribe", c.Unsubscribe);
  library("cuptiEnableCallback", c.EnableCallback);
  library("cuptiGetCallbackName", c.GetCallbackName);
  library("cuptiSetThreadIdType", c.SetThreadIdType);
  library("cuptiGetTimestamp", c.GetTimestamp);
  library("cuptiGetContextId", c.GetContextId);
  library("cuptiGetStreamIdEx", c.GetStreamIdEx);
  library("cuptiGetGraphNodeId", c.GetGraphNodeId);
  library("cuptiFinalize", c.Finalize);
  library.optional("cuptiGetGraphId", c.GetGraphId);
  library.optional("cuptiGetGraphExecId", c.GetGraphExecId);
  library.optional("cuptiActivityEnableRuntimeApi", c.ActivityEnableRuntimeApi);
  library.optional("cuptiActivityEnableDriverApi", c.ActivityEnableDriverApi);
  library.optional("cuptiActivityEnableAllocationSource", c.ActivityEnableAllocationSource);
  driver("cuCtxPushCurrent_v2", c.CtxPushCurrent);
  driver("cuCtxPopCurrent_v2", c.CtxPopCurrent);
  driver("cuCtxSynchronize", c.CtxSynchronize);
  driver("cuCtxGetCurrent", c.CtxGetCurrent);
  driver.optional("cuCtxGetId", c.CtxGetId);
  driver("cuMemAlloc_v2", c.MemAlloc);
  driver("cuMemFree_v2", c.MemFree);
  driver("cuMemsetD8Async", c.MemsetD8Async);
  driver("cuStreamCreate", c.StreamCreate);
  driver("cuThreadExchangeStreamCaptureMode", c.ThreadExchangeStreamCaptureMode);
  driver("cuStreamGetCtx", c.StreamGetCtx);
  driver("cuStreamIsCapturing", c.StreamIsCapturing);
  driver("cuGetErrorName", c.GetErrorName);
  driver("cuGetErrorString", c.GetErrorString);
  for (const DynamicLibrary& r : {driver, library}) {
    if (r.missing.empty()) continue;
    return std::string(r.path) + " has no function " + r.missing +
           ". Install a libcupti for the CUDA version of the driver.";
  }
  cupti = c;
  loaded_path = path;
  return "";
}

std::string cupti_error(CUptiResult result) {
  const char* text = nullptr;
  if (cupti.GetResultString && cupti.GetResultString(result, &text) == 0 && text) return text;
  return "CUPTI result " + std::to_string(result);
}

}  // namespace epprof

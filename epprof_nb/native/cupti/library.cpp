#include "cupti/library.h"

#include <dlfcn.h>

namespace epprof {

Cupti cupti{};

namespace {

std::string loaded_path;

template <typename Function>
bool resolve(void* library, const char* name, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function) return true;
  missing = name;
  return false;
}

}  // namespace

std::string load_cupti(const char* path, const char* driver_path) {
  if (!loaded_path.empty()) {
    if (loaded_path == path) return "";
    return std::string("libcupti is already loaded from ") + loaded_path + "; a process can use only one. " +
           "Restart it to load " + path + ".";
  }
  // The driver first: some versions of libcupti crash if they cannot find it.
  void* driver = dlopen(driver_path, RTLD_NOW | RTLD_GLOBAL);
  if (!driver) return dlerror();
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return dlerror();
  std::string missing;
  Cupti c{};
  bool ok = resolve(library, "cuptiGetVersion", c.GetVersion, missing) &&
            resolve(library, "cuptiGetResultString", c.GetResultString, missing) &&
            resolve(library, "cuptiActivityRegisterCallbacks", c.ActivityRegisterCallbacks, missing) &&
            resolve(library, "cuptiActivityRegisterTimestampCallback",
                 c.ActivityRegisterTimestampCallback, missing) &&
            resolve(library, "cuptiActivityEnable", c.ActivityEnable, missing) &&
            resolve(library, "cuptiActivityDisable", c.ActivityDisable, missing) &&
            resolve(library, "cuptiActivityFlushAll", c.ActivityFlushAll, missing) &&
            resolve(library, "cuptiActivityGetNextRecord", c.ActivityGetNextRecord, missing) &&
            resolve(library, "cuptiActivityGetNumDroppedRecords", c.ActivityGetNumDroppedRecords,
                 missing) &&
            resolve(library, "cuptiActivityPushExternalCorrelationId",
                 c.ActivityPushExternalCorrelationId, missing) &&
            resolve(library, "cuptiActivityPopExternalCorrelationId",
                 c.ActivityPopExternalCorrelationId, missing) &&
            resolve(library, "cuptiSubscribe", c.Subscribe, missing) &&
            resolve(library, "cuptiUnsubscribe", c.Unsubscribe, missing) &&
            resolve(library, "cuptiEnableCallback", c.EnableCallback, missing) &&
            resolve(library, "cuptiGetCallbackName", c.GetCallbackName, missing) &&
            resolve(library, "cuptiSetThreadIdType", c.SetThreadIdType, missing) &&
            resolve(library, "cuptiGetGraphNodeId", c.GetGraphNodeId, missing) &&
            resolve(driver, "cuCtxPushCurrent_v2", c.CtxPushCurrent, missing) &&
            resolve(driver, "cuCtxPopCurrent_v2", c.CtxPopCurrent, missing) &&
            resolve(driver, "cuCtxSynchronize", c.CtxSynchronize, missing) &&
            resolve(driver, "cuCtxGetCurrent", c.CtxGetCurrent, missing);
  if (!ok) return std::string(path) + " has no function " + missing + ". Install a libcupti that matches the CUDA driver.";
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

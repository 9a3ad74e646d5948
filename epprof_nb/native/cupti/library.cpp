#include "cupti/library.h"

#include <dlfcn.h>

namespace epprof {

Cupti cupti{};

namespace {

std::string loaded_path;

template <typename Function>
bool find(void* library, const char* name, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function) return true;
  missing = name;
  return false;
}

}  // namespace

bool cupti_loaded() { return !loaded_path.empty(); }

std::string load_cupti(const char* path, const char* driver_path) {
  if (cupti_loaded()) {
    if (loaded_path == path) return "";
    return "libcupti is already loaded from " + loaded_path;
  }
  // The driver first: some versions of libcupti crash where it cannot be found.
  void* driver = dlopen(driver_path, RTLD_NOW | RTLD_GLOBAL);
  if (!driver) return dlerror();
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return dlerror();
  std::string missing;
  Cupti c{};
  bool ok = find(library, "cuptiGetVersion", c.GetVersion, missing) &&
            find(library, "cuptiGetResultString", c.GetResultString, missing) &&
            find(library, "cuptiActivityRegisterCallbacks", c.ActivityRegisterCallbacks, missing) &&
            find(library, "cuptiActivityRegisterTimestampCallback",
                 c.ActivityRegisterTimestampCallback, missing) &&
            find(library, "cuptiActivityEnable", c.ActivityEnable, missing) &&
            find(library, "cuptiActivityDisable", c.ActivityDisable, missing) &&
            find(library, "cuptiActivityFlushAll", c.ActivityFlushAll, missing) &&
            find(library, "cuptiActivityGetNextRecord", c.ActivityGetNextRecord, missing) &&
            find(library, "cuptiActivityGetNumDroppedRecords", c.ActivityGetNumDroppedRecords,
                 missing) &&
            find(library, "cuptiActivityPushExternalCorrelationId",
                 c.ActivityPushExternalCorrelationId, missing) &&
            find(library, "cuptiActivityPopExternalCorrelationId",
                 c.ActivityPopExternalCorrelationId, missing) &&
            find(library, "cuptiSubscribe", c.Subscribe, missing) &&
            find(library, "cuptiUnsubscribe", c.Unsubscribe, missing) &&
            find(library, "cuptiEnableCallback", c.EnableCallback, missing) &&
            find(library, "cuptiGetCallbackName", c.GetCallbackName, missing) &&
            find(library, "cuptiSetThreadIdType", c.SetThreadIdType, missing) &&
            find(library, "cuptiGetGraphNodeId", c.GetGraphNodeId, missing) &&
            find(driver, "cuCtxPushCurrent_v2", c.CtxPushCurrent, missing) &&
            find(driver, "cuCtxPopCurrent_v2", c.CtxPopCurrent, missing) &&
            find(driver, "cuCtxSynchronize", c.CtxSynchronize, missing) &&
            find(driver, "cuCtxGetCurrent", c.CtxGetCurrent, missing);
  if (!ok) return std::string(path) + " has no " + missing;
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

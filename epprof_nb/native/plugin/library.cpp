// The entry points of the library that ONNX Runtime loads from the same file as the Python extension.
#include "ort/observer_ep.h"
#include "ort/runtime.h"

using namespace epprof::ort;

extern "C" {

__attribute__((visibility("default"))) Status* CreateEpFactories(
    const char*, const ApiBase* base, const Logger*, EpFactory** factories, size_t room,
    size_t* count) {
  *count = 0;
  bool refused = false;
  Status* status = load_api(base, &refused);
  if (refused || !room) return status;
  factories[0] = observer_factory();
  *count = 1;
  return nullptr;
}

__attribute__((visibility("default"))) Status* ReleaseEpFactory(EpFactory*) { return nullptr; }

}  // extern "C"

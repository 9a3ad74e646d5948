// The entry points of the library that ONNX Runtime loads from the same file as the Python extension.
// The name of the registration selects the provider: the observer's name, or any other name for the
// provider of Python kernels.
#include <string_view>

#include "ep/factory.h"
#include "ep/runtime.h"
#include "ort/observer_ep.h"
#include "ort/runtime.h"
#include "ort/status.h"

using namespace epprof::ort;

extern "C" {

__attribute__((visibility("default"))) Status* CreateEpFactories(
    const char* registered_name, const ApiBase* base, const Logger*, EpFactory** factories,
    size_t room, size_t* count) {
  if (!base || !base->get_api || !base->get_version) return nullptr;  // no way to make a status
  if (!factories || !count) return nullptr;  // no place for a result
  *count = 0;
  bool refused = false;
  Status* status = load_api(base, &refused);
  if (refused || !room) return status;
  std::string_view name = registered_name ? registered_name : "";
  if (name == kObserverName) {
    factories[0] = observer_factory();
    *count = 1;
    return nullptr;
  }
  return as_status([&] {
    epprof::ep::load_runtime(base);
    *count = epprof::ep::provider_factories(name, factories, room);
  });
}

__attribute__((visibility("default"))) Status* ReleaseEpFactory(EpFactory*) { return nullptr; }

}  // extern "C"

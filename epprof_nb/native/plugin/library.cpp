// The entry points of the library that ONNX Runtime loads from the same file as the Python extension.
// The name of the registration selects the provider.
#include <string_view>

#include "ep/factory.h"
#include "ep/declaration.h"
#include "ep/runtime.h"
#include "ort/observer_ep.h"
#include "ort/runtime.h"

using namespace epprof::ort;

extern "C" {

__attribute__((visibility("default"))) Status* CreateEpFactories(
    const char* registered_name, const ApiBase* base, const Logger*, EpFactory** factories,
    size_t room, size_t* count) {
  *count = 0;
  bool refused = false;
  Status* status = load_api(base, &refused);
  if (refused || !room) return status;
  if (std::string_view(registered_name) == epprof::ep::kProviderName) {
    epprof::ep::load_runtime(base);
    factories[0] = epprof::ep::provider_factory();
  } else if (std::string_view(registered_name) == epprof::ep::kCudaLibrary) {
    epprof::ep::load_runtime(base);
    factories[0] = epprof::ep::cuda_factory();
  } else {
    factories[0] = observer_factory();
  }
  *count = 1;
  return nullptr;
}

__attribute__((visibility("default"))) Status* ReleaseEpFactory(EpFactory*) { return nullptr; }

}  // extern "C"

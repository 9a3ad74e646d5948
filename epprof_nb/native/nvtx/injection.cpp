// NVTX's injection interface. Many libraries contain a copy of NVTX. At its first call, a copy
// loads the library that NVTX_INJECTION64_PATH names, and calls InitializeInjectionNvtx2.
#include <dlfcn.h>

#include <atomic>
#include <string>
#include <vector>

#include "core/fork.h"
#include "nvtx/api.h"
#include "nvtx/callbacks.h"
#include "nvtx/payload_structs.h"
#include "nvtx/ranges.h"
#include "nvtx/torch_operators.h"

namespace epprof::nvtx {
namespace {

struct Attached {
  std::string path;  // of the library that contains this copy of NVTX
  CallbackTables tables;
};

ForkSafeMutex domains_mutex;
auto& attached = *new std::vector<Attached>;
bool is_recording() { return recording_ranges || are_operators_recorded(); }
std::atomic<bool> allowed{false};

bool attach(ExportTable export_table) {
  auto* callbacks = static_cast<const Callbacks*>(export_table(kCallbacks));
  if (!callbacks || callbacks->struct_size < sizeof(Callbacks)) return false;
  Attached copy;
  Dl_info library;
  if (dladdr(reinterpret_cast<void*>(export_table), &library) && library.dli_fname) {
    copy.path = library.dli_fname;
  }
  Table &core = copy.tables.core, &core2 = copy.tables.core2;
  if (!callbacks->function_table(kCoreModule, &core.functions, &core.size)) return false;
  if (!callbacks->function_table(kCore2Module, &core2.functions, &core2.size)) return false;
  ForkLockGuard lock(domains_mutex);
  copy.tables.set_names();
  copy.tables.set_ranges(is_recording());
  attached.push_back(std::move(copy));
  return true;
}

}  // namespace
}  // namespace epprof::nvtx

using namespace epprof;
using namespace epprof::nvtx;

extern "C" {

// A child process inherits the variable, but loads this library without the Python module.
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(ExportTable export_table) {
  return allowed.load() && attach(export_table);
}

// NVTX calls it for each of its extensions at their first use.
__attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(ExtensionModule* module) {
  return allowed.load() && attach_extension(module);
}

void epprof_nvtx_allow(void) { allowed = true; }

void epprof_nvtx_record(int on) {
  ForkLockGuard lock(domains_mutex);
  recording_ranges = on != 0;
  for (const Attached& copy : attached) copy.tables.set_ranges(is_recording());
}

void epprof_operators_record(int on) {
  ForkLockGuard lock(domains_mutex);
  record_operators(on != 0);
  for (const Attached& copy : attached) copy.tables.set_ranges(is_recording());
}

void epprof_nvtx_attached(void (*each)(const char*, void*), void* data) {
  std::vector<std::string> paths;
  {
    ForkLockGuard lock(domains_mutex);
    for (const Attached& copy : attached) paths.push_back(copy.path);
  }
  for (const std::string& path : paths) each(path.c_str(), data);
}

}  // extern "C"

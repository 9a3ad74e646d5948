// Modules in PTX. It is not executed: functions of known names do on the host what the PTX says.
#include <string.h>
#include <time.h>

#include "state.h"

using namespace fake;

extern "C" void* fake_load(void (*run)(void**, long long), const size_t* sizes, size_t count);
extern "C" void fake_unload(void* function);

namespace {

struct Module {
  std::string code;
  std::vector<void*> functions;
};
std::set<Module*>& modules = *new std::set<Module*>;

uint64_t globaltimer() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return uint64_t(now.tv_sec) * 1000000000 + uint64_t(now.tv_nsec);
}

// epprof_delay(length, times)
void delay(void** parameters, long long) {
  uint64_t length = *static_cast<uint64_t*>(parameters[0]), begin = globaltimer(), now;
  auto* times = static_cast<volatile uint64_t*>(parameters[1]);
  do now = globaltimer(); while (now - begin < length);
  times[0] = begin;
  times[1] = now;
}

}  // namespace

extern "C" {

int cuModuleLoadData(Module** module, const char* image) {
  std::lock_guard lock(mutex);
  if (int failed = unsafe("cuModuleLoadData")) return failed;
  if (current.empty()) return kInvalidContext;
  if (!strstr(image, ".version")) return kInvalidValue;
  modules.insert(*module = new Module{image, {}});
  return 0;
}
int cuModuleGetFunction(void** function, Module* module, const char* name) {
  {
    std::lock_guard lock(mutex);
    if (int failed = enter("cuModuleGetFunction")) return failed;
    std::string entry = ".entry " + std::string(name) + "(.param .u64 length, .param .u64 times)";
    if (!modules.count(module) || module->code.find(entry) == std::string::npos) return kNotFound;
  }
  constexpr size_t kSizes[] = {sizeof(uint64_t), 0};
  *function = fake_load(delay, kSizes, 2);
  module->functions.push_back(*function);
  return 0;
}
int cuModuleUnload(Module* module) {
  {
    std::lock_guard lock(mutex);
    if (int failed = unsafe("cuModuleUnload")) return failed;
    if (!modules.erase(module)) {
      misuse("cuModuleUnload of a module that was unloaded");
      return kInvalidHandle;
    }
  }
  for (void* function : module->functions) fake_unload(function);
  delete module;
  return 0;
}
size_t fake_modules() {
  std::lock_guard lock(mutex);
  return modules.size();
}

}  // extern "C"

// NVTX's injection interface. Many libraries contain a copy of NVTX. At its first call, a copy
// loads the library that NVTX_INJECTION64_PATH names, and calls InitializeInjectionNvtx2.
#include <dlfcn.h>

#include <atomic>
#include <string>
#include <vector>

#include "core/fork.h"
#include "core/string_table.h"
#include "nvtx/api.h"
#include "nvtx/jax_xla.h"
#include "nvtx/payload.h"
#include "nvtx/ranges.h"
#include "nvtx/torch_operators.h"

namespace epprof::nvtx {
namespace {

constexpr uint64_t kWithoutRow = uint64_t(1) << 32;  // handle of a registered string

// The handle of a registered string is its id. Applications may pass other handles, by mistake or
// because they registered the string elsewhere.
uint32_t name_of_handle(const void* handle) {
  auto id = reinterpret_cast<uintptr_t>(handle);
  return id < string_count() ? uint32_t(id) : intern_text("(unknown string)");
}

// The message of an event as a name.
uint32_t name_of(const EventAttributes* attributes) {
  if (!attributes || !attributes->message) return intern_text(nullptr);
  switch (attributes->message_type) {
    case kAscii:
      return intern_text(static_cast<const char*>(attributes->message));
    case kUnicode:
      return intern_wide(static_cast<const wchar_t*>(attributes->message));
    case kRegistered:
      return name_of_handle(attributes->message);
    default:
      return intern_text(nullptr);
  }
}

bool is_without_row(const Domain* domain, const EventAttributes* attributes) {
  if (!attributes || !attributes->message) return false;
  if (attributes->message_type == kRegistered) {
    return reinterpret_cast<uintptr_t>(attributes->message) == kWithoutRow;
  }
  return attributes->message_type == kAscii &&
         is_of_compiler(domain, static_cast<const char*>(attributes->message));
}

// Attributes of a newer version may be longer; attributes of an older one are not read.
const EventAttributes* readable(const EventAttributes* attributes) {
  return attributes && attributes->size >= sizeof(EventAttributes) ? attributes : nullptr;
}

template <typename Handle>
Handle handle_of(uint64_t name) {
  return reinterpret_cast<Handle>(uintptr_t(name));
}

// -- functions that NVTX calls while recording ------------------------------------------------

void mark_ex(const EventAttributes* a) {
  a = readable(a);
  mark(domain_of(nullptr), name_of(a), a);
}
void mark_a(const char* text) { mark(domain_of(nullptr), intern_text(text), nullptr); }
void mark_w(const wchar_t* text) { mark(domain_of(nullptr), intern_wide(text), nullptr); }
uint64_t start_ex(const EventAttributes* a) {
  a = readable(a);
  return start_range(domain_of(nullptr), name_of(a), a);
}
uint64_t start_a(const char* text) {
  return start_range(domain_of(nullptr), intern_text(text), nullptr);
}
uint64_t start_w(const wchar_t* text) {
  return start_range(domain_of(nullptr), intern_wide(text), nullptr);
}
int push_ex(const EventAttributes* a) {
  a = readable(a);
  return push_range(domain_of(nullptr), name_of(a), a);
}
int push_a(const char* text) { return push_message(text); }
int push_w(const wchar_t* text) {
  return push_range(domain_of(nullptr), intern_wide(text), nullptr);
}
int pop() { return pop_range(domain_of(nullptr)); }
void domain_mark(void* domain, const EventAttributes* a) {
  a = readable(a);
  mark(domain_of(domain), name_of(a), a);
}
uint64_t domain_start(void* domain, const EventAttributes* a) {
  a = readable(a);
  return start_range(domain_of(domain), name_of(a), a);
}
void domain_end(void*, uint64_t id) { end_range(id); }
int domain_push(void* domain, const EventAttributes* a) {
  a = readable(a);
  if (is_without_row(domain_of(domain), a) || is_helping_compiler(domain_of(domain))) {
    return push_without_row(domain_of(domain));
  }
  return push_range(domain_of(domain), name_of(a), a);
}
int domain_pop(void* domain) { return pop_range(domain_of(domain)); }

// -- functions that NVTX always calls, because their results outlive a recording ---------------

void name_category_a(uint32_t category, const char* text) {
  name_category(domain_of(nullptr), category, intern_text(text));
}
void name_category_w(uint32_t category, const wchar_t* text) {
  name_category(domain_of(nullptr), category, intern_wide(text));
}
void domain_name_category_a(void* domain, uint32_t category, const char* text) {
  name_category(domain_of(domain), category, intern_text(text));
}
void domain_name_category_w(void* domain, uint32_t category, const wchar_t* text) {
  name_category(domain_of(domain), category, intern_wide(text));
}
void* register_a(void* domain, const char* text) {
  // The name of a range without a row is not used.
  if (is_of_compiler(domain_of(domain), text)) return handle_of<void*>(kWithoutRow);
  return handle_of<void*>(intern_text(text));
}
void* register_w(void*, const wchar_t* text) { return handle_of<void*>(intern_wide(text)); }
void* create_a(const char* text) { return domain_named(intern_text(text)); }
void* create_w(const wchar_t* text) { return domain_named(intern_wide(text)); }

template <typename F>
Function function(F* pointer) {
  return reinterpret_cast<Function>(pointer);
}

struct Entry {
  unsigned number;
  Function function;
};
const Entry core_ranges[] = {
    {kMarkEx, function(mark_ex)},       {kMarkA, function(mark_a)},
    {kMarkW, function(mark_w)},         {kRangeStartEx, function(start_ex)},
    {kRangeStartA, function(start_a)},  {kRangeStartW, function(start_w)},
    {kRangeEnd, function(end_range)},   {kRangePushEx, function(push_ex)},
    {kRangePushA, function(push_a)},    {kRangePushW, function(push_w)},
    {kRangePop, function(pop)},
};
const Entry core2_ranges[] = {
    {kDomainMarkEx, function(domain_mark)},       {kDomainRangeStartEx, function(domain_start)},
    {kDomainRangeEnd, function(domain_end)},      {kDomainRangePushEx, function(domain_push)},
    {kDomainRangePop, function(domain_pop)},
};
const Entry core_names[] = {
    {kNameCategoryA, function(name_category_a)},
    {kNameCategoryW, function(name_category_w)},
};
const Entry core2_names[] = {
    {kDomainNameCategoryA, function(domain_name_category_a)},
    {kDomainNameCategoryW, function(domain_name_category_w)},
    {kDomainRegisterStringA, function(register_a)},
    {kDomainRegisterStringW, function(register_w)},
    {kDomainCreateA, function(create_a)},
    {kDomainCreateW, function(create_w)},
};

struct Table {
  FunctionTable functions = nullptr;
  unsigned size = 0;

  // A null pointer makes NVTX's function return at once.
  template <size_t count>
  void set(const Entry (&entries)[count], bool on) const {
    for (const Entry& entry : entries) {
      if (entry.number >= size || !functions[entry.number]) continue;
      __atomic_store_n(functions[entry.number], on ? entry.function : nullptr, __ATOMIC_RELEASE);
    }
  }
};

struct Attached {
  std::string path;  // of the library that contains this copy of NVTX
  Table core, core2;

  void record(bool on) const {
    core.set(core_ranges, on);
    core2.set(core2_ranges, on);
  }
};

ForkSafeMutex mutex;
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
  if (!callbacks->function_table(kCoreModule, &copy.core.functions, &copy.core.size)) return false;
  if (!callbacks->function_table(kCore2Module, &copy.core2.functions, &copy.core2.size)) {
    return false;
  }
  ForkLockGuard lock(mutex);
  copy.core.set(core_names, true);
  copy.core2.set(core2_names, true);
  copy.record(is_recording());
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
  ForkLockGuard lock(mutex);
  recording_ranges = on != 0;
  for (const Attached& copy : attached) copy.record(is_recording());
}

void epprof_operators_record(int on) {
  ForkLockGuard lock(mutex);
  record_operators(on != 0);
  for (const Attached& copy : attached) copy.record(is_recording());
}

void epprof_nvtx_attached(void (*each)(const char*, void*), void* data) {
  std::vector<std::string> paths;
  {
    ForkLockGuard lock(mutex);
    for (const Attached& copy : attached) paths.push_back(copy.path);
  }
  for (const std::string& path : paths) each(path.c_str(), data);
}

}  // extern "C"

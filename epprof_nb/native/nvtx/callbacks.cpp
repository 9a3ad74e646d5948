#include "nvtx/callbacks.h"

#include "core/string_table.h"
#include "nvtx/ranges.h"
#include "nvtx/torch_operators.h"
#include "nvtx/xla_compiler_ranges.h"

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

// -- functions of ranges and marks ------------------------------------------------------------

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

// -- functions of names -----------------------------------------------------------------------

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

// A null pointer makes NVTX's function return at once.
template <size_t count>
void set(const Table& table, const Entry (&entries)[count], bool on) {
  for (const Entry& entry : entries) {
    if (entry.number >= table.size || !table.functions[entry.number]) continue;
    Function value = on ? entry.function : nullptr;
    __atomic_store_n(table.functions[entry.number], value, __ATOMIC_RELEASE);
  }
}

}  // namespace

void CallbackTables::set_names() const {
  set(core, core_names, true);
  set(core2, core2_names, true);
}

void CallbackTables::set_ranges(bool on) const {
  set(core, core_ranges, on);
  set(core2, core2_ranges, on);
}

}  // namespace epprof::nvtx

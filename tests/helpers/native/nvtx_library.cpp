// A library with a copy of NVTX of its own, as many have: what tests call with ctypes.
#include <nvtx3/nvToolsExt.h>

namespace {

nvtxEventAttributes_t attributes(const char* name) {
  nvtxEventAttributes_t made = {};
  made.version = NVTX_VERSION;
  made.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  made.messageType = NVTX_MESSAGE_TYPE_ASCII;
  made.message.ascii = name;
  return made;
}

nvtxDomainHandle_t domain() {
  static nvtxDomainHandle_t made = nvtxDomainCreateW(L"näme");
  return made;
}

}  // namespace

extern "C" {

int push(const char* name) { return nvtxRangePushA(name); }
int push_wide(const wchar_t* name) { return nvtxRangePushW(name); }
int pop() { return nvtxRangePop(); }
unsigned long long start(const char* name) { return nvtxRangeStartA(name); }
void end(unsigned long long id) { nvtxRangeEnd(id); }
void mark(const char* name) { nvtxMarkA(name); }
int domain_push(const char* name) {
  nvtxEventAttributes_t event = attributes(name);
  return nvtxDomainRangePushEx(domain(), &event);
}
int domain_pop() { return nvtxDomainRangePop(domain()); }

// As XLA does: some messages are registered once, some are not.
int push_in(const char* domain, const char* name, bool is_registered) {
  nvtxDomainHandle_t handle = nvtxDomainCreateA(domain);
  nvtxEventAttributes_t event = attributes(name);
  if (is_registered) {
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = nvtxDomainRegisterStringA(handle, name);
  }
  return nvtxDomainRangePushEx(handle, &event);
}
int pop_in(const char* domain) { return nvtxDomainRangePop(nvtxDomainCreateA(domain)); }

void push_handle(unsigned long long handle) {
  nvtxEventAttributes_t event = {};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = reinterpret_cast<nvtxStringHandle_t>(handle);
  nvtxRangePushEx(&event);
}
void push_registered() {
  static nvtxStringHandle_t name = nvtxDomainRegisterStringW(domain(), L"registered 名");
  nvtxEventAttributes_t event = attributes(nullptr);
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = name;
  nvtxDomainNameCategoryA(domain(), 7, "seven");
  event.category = 7;
  event.payloadType = NVTX_PAYLOAD_TYPE_INT32;
  event.payload.iValue = -5;
  nvtxDomainRangePushEx(domain(), &event);
}

// Ranges whose payloads are the numbers from `first` up to `end`.
void push_numbers(unsigned long long first, unsigned long long end) {
  nvtxEventAttributes_t event = attributes("number");
  event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  for (; first < end; first++) {
    event.payload.ullValue = first;
    nvtxDomainRangePushEx(domain(), &event);
    nvtxDomainRangePop(domain());
  }
}

// Attributes that are shorter than NVTX's, as of a damaged or older library.
int push_short() {
  nvtxEventAttributes_t event = attributes("not read");
  event.size = 8;
  return nvtxRangePushEx(&event);
}

int push_without_attributes() { return nvtxRangePushEx(nullptr); }

}  // extern "C"

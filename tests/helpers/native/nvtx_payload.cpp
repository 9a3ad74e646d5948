// A library whose ranges have payloads with schemas, as NCCL's have. It asks the tool as NVTX's own
// implementation of the extension does, whose header is not part of every release.
#include <dlfcn.h>

#include <cstdlib>

#include <nvtx3/nvToolsExt.h>

#include "nvtx/abi.h"

using namespace epprof::nvtx;

namespace {

constexpr uint64_t kSchema = 1 << 24, kReduction = kSchema + 1, kMixed = kSchema + 2,
                   kSign = kSchema + 3;
intptr_t slots[63];

struct Collective {
  uint64_t communicator;
  size_t bytes;
  int reduction;
};
const SchemaEntry collective[] = {
    {0, kUint64, "communicator", nullptr, 0, offsetof(Collective, communicator), nullptr, nullptr},
    {0, kSize, "Message size [bytes]", nullptr, 0, offsetof(Collective, bytes), nullptr, nullptr},
    {0, kReduction, "reduction", nullptr, 0, offsetof(Collective, reduction), nullptr, nullptr},
};
const EnumerationEntry reductions[] = {{"Sum", 0, 0}, {"Prod", 1, 0}};
const EnumerationEntry signs[] = {{"minus", uint64_t(-1), 0}, {"plus", 1, 0}};

struct Mixed {  // without offsets in the schema
  int8_t small;
  int32_t negative;
  double real;
  float infinite;
  const char* text;
  char fixed[4];
  uint16_t array[2];
};
const SchemaEntry mixed[] = {
    {0, kInt8, "small", nullptr, 0, 0, nullptr, nullptr},
    {0, kInt32, "negative", nullptr, 0, 0, nullptr, nullptr},
    {0, kReal, "real", nullptr, 0, 0, nullptr, nullptr},
    {0, kSingle, "infinite", nullptr, 0, 0, nullptr, nullptr},
    {0, kText, "text", nullptr, 0, 0, nullptr, nullptr},
    {0, kText, "fixed", nullptr, 4, offsetof(Mixed, fixed), nullptr, nullptr},
    {1 << 4, kUint16, "array", nullptr, 2, offsetof(Mixed, array), nullptr, nullptr},
    {0, 999, "of an unknown type", nullptr, 0, 0, nullptr, nullptr},
    {0, kUint64, "beyond the end", nullptr, 0, 4096, nullptr, nullptr},
};

nvtxDomainHandle_t domain() {
  static nvtxDomainHandle_t made = nvtxDomainCreateA("collectives");
  return made;
}

int push(const char* name, const ExtendedPayload* payloads, int count) {
  nvtxEventAttributes_t event = {};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = name;
  event.payloadType = kExtended;
  event.reserved0 = count;
  event.payload.ullValue = reinterpret_cast<uintptr_t>(payloads);
  return nvtxDomainRangePushEx(domain(), &event);
}

}  // namespace

extern "C" {

int attach(int module) {
  void* tool = dlopen(std::getenv("NVTX_INJECTION64_PATH"), RTLD_LAZY);
  auto ask = reinterpret_cast<int (*)(ExtensionModule*)>(
      tool ? dlsym(tool, "InitializeInjectionNvtxExtension") : nullptr);
  ExtensionSegment segment = {0, 63, slots};
  ExtensionModule asking = {3, sizeof(ExtensionModule), uint16_t(module), 0x104, 1, &segment,
                            nullptr, nullptr};
  return ask ? ask(&asking) : -1;
}

void register_schemas() {
  auto add_enumeration = reinterpret_cast<uint64_t (*)(void*, const EnumerationAttributes*)>(
      slots[kRegisterEnumeration]);
  auto add = reinterpret_cast<uint64_t (*)(void*, const SchemaAttributes*)>(slots[kRegisterSchema]);
  EnumerationAttributes enumeration = {kEnumerationHasId, "reduction", reductions, 2,
                                       sizeof(int), kReduction, nullptr};
  add_enumeration(domain(), &enumeration);
  enumeration = {kEnumerationHasId, "sign", signs, 2, sizeof(int), kSign, nullptr};
  add_enumeration(domain(), &enumeration);
  SchemaAttributes schema = {kSchemaHasId, "AllReduce", 1, 0, collective, 3, sizeof(Collective), 0,
                             kSchema, nullptr};
  add(domain(), &schema);
  schema = {kSchemaHasId, "mixed", 1, 0, mixed, 9, sizeof(Mixed), 0, kMixed, nullptr};
  add(domain(), &schema);
}

unsigned long long register_without_id() {
  auto add = reinterpret_cast<uint64_t (*)(void*, const SchemaAttributes*)>(slots[kRegisterSchema]);
  SchemaAttributes schema = {0, "again", 1, 0, collective, 1, 8, 0, 0, nullptr};
  return add(domain(), &schema);
}

int push_collective(unsigned long long communicator, size_t bytes, int reduction) {
  Collective values = {communicator, bytes, reduction};
  ExtendedPayload payload = {kSchema, sizeof values, &values};
  return push("AllReduce", &payload, 1);
}

void push_collectives(unsigned long long first, unsigned long long end) {
  for (; first < end; first++) {
    push_collective(first, 0, 0);
    nvtxDomainRangePop(domain());
  }
}

int push_mixed() {
  Mixed values = {-1, -70000, 0.1, 1e30f * 1e30f, "a \"text\"\n", {'a', 'b', 'c', 'd'}, {1, 2}};
  ExtendedPayload payloads[] = {{kMixed, sizeof values, &values}, {12345, sizeof values, &values}};
  return push("mixed", payloads, 2);
}

int push_short() {
  Collective values = {7, 8, 0};
  ExtendedPayload payload = {kSchema, sizeof(uint64_t), &values};
  return push("short", &payload, 1);
}

int push_nothing(int count) { return push("nothing", nullptr, count); }

// Registers a schema and pushes a payload of it.
int push_with(const SchemaAttributes* schema, const void* data, size_t size) {
  auto add = reinterpret_cast<uint64_t (*)(void*, const SchemaAttributes*)>(slots[kRegisterSchema]);
  ExtendedPayload payload = {add(domain(), schema), size, data};
  return push("given", &payload, 1);
}

int pop() { return nvtxDomainRangePop(domain()); }

}  // extern "C"

// The part of NVTX's binary interface that an injection library needs. A test compares it with NVTX's
// headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cwchar>

namespace epprof::nvtx {

enum ColorType : int32_t { kNoColor = 0, kArgb = 1 };
enum PayloadType : int32_t {
  kNoPayload = 0,
  kUnsigned64 = 1,
  kSigned64 = 2,
  kDouble = 3,
  kUnsigned32 = 4,
  kSigned32 = 5,
  kFloat = 6,
};
enum MessageType : int32_t { kNoMessage = 0, kAscii = 1, kUnicode = 2, kRegistered = 3 };

struct EventAttributes {
  uint16_t version;
  uint16_t size;  // of this struct, as the application knows it
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type;
  int32_t reserved;
  uint64_t payload;
  int32_t message_type;
  const void* message;
};
static_assert(sizeof(EventAttributes) == 48);

constexpr int kNoTracking = -2;  // returned by push and pop

// Numbers of the functions in the tables of a module.
enum Core : unsigned {
  kMarkEx = 1, kMarkA, kMarkW, kRangeStartEx, kRangeStartA, kRangeStartW, kRangeEnd, kRangePushEx,
  kRangePushA, kRangePushW, kRangePop, kNameCategoryA, kNameCategoryW, kNameOsThreadA,
  kNameOsThreadW, kCoreSize,
};
enum Core2 : unsigned {
  kDomainMarkEx = 1, kDomainRangeStartEx, kDomainRangeEnd, kDomainRangePushEx, kDomainRangePop,
  kDomainResourceCreate, kDomainResourceDestroy, kDomainNameCategoryA, kDomainNameCategoryW,
  kDomainRegisterStringA, kDomainRegisterStringW, kDomainCreateA, kDomainCreateW, kDomainDestroy,
  kInitialize, kCore2Size,
};
enum Module : int { kCoreModule = 1, kCore2Module = 5 };

using Function = void (*)();
// For each function of a module, where NVTX keeps the pointer that it calls; null: unknown to it.
using FunctionTable = Function**;

constexpr uint32_t kCallbacks = 1;  // number of this export table
struct Callbacks {
  size_t struct_size;
  int (*function_table)(int module, FunctionTable* table, unsigned* size);
};
using ExportTable = const void* (*)(uint32_t number);

}  // namespace epprof::nvtx

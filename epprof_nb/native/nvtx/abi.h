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
  kExtended = int32_t(0xDFBD0009),  // a pointer to ExtendedPayloads
};
enum MessageType : int32_t { kNoMessage = 0, kAscii = 1, kUnicode = 2, kRegistered = 3 };

struct EventAttributes {
  uint16_t version;
  uint16_t size;  // of this struct in the application
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type;
  int32_t payload_count;  // of kExtended
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
// The places of the pointers that NVTX calls, by function of a module; null: unknown to it.
using FunctionTable = Function**;

constexpr uint32_t kCallbacks = 1;  // number of this export table
struct Callbacks {
  size_t struct_size;
  int (*function_table)(int module, FunctionTable* table, unsigned* size);
};
using ExportTable = const void* (*)(uint32_t number);

// -- the extension for payloads with a schema ---------------------------------------------------

struct ExtendedPayload {
  uint64_t schema;
  size_t size;
  const void* data;
};

struct SchemaEntry {
  uint64_t flags;
  uint64_t type;  // a SchemaType, or the id of a schema or of an enumeration
  const char* name;
  const char* description;
  uint64_t length;  // of an array or string
  uint64_t offset;
  const void* semantics;
  const void* reserved;
};
struct SchemaAttributes {
  uint64_t fields;
  const char* name;
  uint64_t type;  // a SchemaKind
  uint64_t flags;
  const SchemaEntry* entries;
  size_t entry_count;
  size_t static_size;
  size_t alignment;  // of a packed struct; 0: not packed
  uint64_t id;
  void* extension;
};
struct EnumerationEntry {
  const char* name;
  uint64_t value;
  int8_t is_flag;
};
struct EnumerationAttributes {
  uint64_t fields;
  const char* name;
  const EnumerationEntry* entries;
  size_t entry_count;
  size_t size;
  uint64_t id;
  void* extension;
};

enum SchemaType : uint64_t {
  kChar = 1, kUchar, kShort, kUshort, kInt, kUint, kLong, kUlong, kLongLong, kUlongLong, kInt8,
  kUint8, kInt16, kUint16, kInt32, kUint32, kInt64, kUint64, kSingle, kReal, kLongReal, kSize,
  kAddress, kFloat32 = 43, kFloat64 = 44, kText = 75, kUtf8 = 76,
};
enum SchemaKind : uint64_t { kStruct = 1, kDynamicStruct, kUnion, kSelectedUnion };
constexpr uint64_t kEntryIsPointer = 1 << 1;
constexpr uint64_t kEntryIsElsewhere = kEntryIsPointer | 1 << 2 | 1 << 3;  // pointers and offsets
constexpr uint64_t kEntryIsArray = 7 << 4, kEntryIsFixedArray = 1 << 4;
constexpr uint64_t kSchemaHasId = 1 << 8, kEnumerationHasId = 1 << 5;
constexpr uint64_t kFirstDynamicId = uint64_t(1) << 32;

struct ExtensionSegment {
  size_t id;
  size_t slot_count;
  intptr_t* slots;
};
struct ExtensionModule {
  uint16_t version;
  uint16_t struct_size;
  uint16_t id;
  uint16_t compatible_id;
  size_t segment_count;
  ExtensionSegment* segments;
  intptr_t (*export_function)(uint32_t);
  const void* info;
};
constexpr uint16_t kPayloadModule = 2;
enum PayloadSlot : size_t { kRegisterSchema = 0, kRegisterEnumeration = 1 };

}  // namespace epprof::nvtx

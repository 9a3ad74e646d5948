// The structs of nvtx/abi.h for payloads, against the header of NVTX's extension.
#include <cstddef>

#include <nvtx3/nvToolsExtPayload.h>

#include "nvtx/abi.h"

using namespace epprof::nvtx;

#define SAME(ours, theirs) static_assert(uint64_t(ours) == uint64_t(theirs))
#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs))
#define SAME_FIELD(ours, field, theirs, name)                          \
  static_assert(offsetof(ours, field) == offsetof(theirs, name)); \
  static_assert(sizeof(ours::field) == sizeof(theirs::name))

SAME_SIZE(ExtendedPayload, nvtxPayloadData_t);
SAME_FIELD(ExtendedPayload, schema, nvtxPayloadData_t, schemaId);
SAME_FIELD(ExtendedPayload, data, nvtxPayloadData_t, payload);
SAME_SIZE(SchemaEntry, nvtxPayloadSchemaEntry_t);
SAME_FIELD(SchemaEntry, type, nvtxPayloadSchemaEntry_t, type);
SAME_FIELD(SchemaEntry, name, nvtxPayloadSchemaEntry_t, name);
SAME_FIELD(SchemaEntry, length, nvtxPayloadSchemaEntry_t, arrayOrUnionDetail);
SAME_FIELD(SchemaEntry, offset, nvtxPayloadSchemaEntry_t, offset);
SAME_SIZE(SchemaAttributes, nvtxPayloadSchemaAttr_t);
SAME_FIELD(SchemaAttributes, entries, nvtxPayloadSchemaAttr_t, entries);
SAME_FIELD(SchemaAttributes, entry_count, nvtxPayloadSchemaAttr_t, numEntries);
SAME_FIELD(SchemaAttributes, id, nvtxPayloadSchemaAttr_t, schemaId);
SAME_FIELD(SchemaAttributes, type, nvtxPayloadSchemaAttr_t, type);
SAME_FIELD(SchemaAttributes, alignment, nvtxPayloadSchemaAttr_t, packAlign);
SAME_SIZE(EnumerationEntry, nvtxPayloadEnum_t);
SAME_FIELD(EnumerationEntry, value, nvtxPayloadEnum_t, value);
SAME_SIZE(EnumerationAttributes, nvtxPayloadEnumAttr_t);
SAME_FIELD(EnumerationAttributes, size, nvtxPayloadEnumAttr_t, sizeOfEnum);
SAME_FIELD(EnumerationAttributes, id, nvtxPayloadEnumAttr_t, schemaId);
SAME_SIZE(ExtensionSegment, nvtxExtModuleSegment_t);
SAME_SIZE(ExtensionModule, nvtxExtModuleInfo_t);
SAME_FIELD(ExtensionModule, id, nvtxExtModuleInfo_t, moduleId);
SAME_FIELD(ExtensionModule, segments, nvtxExtModuleInfo_t, segments);
SAME_FIELD(ExtensionSegment, slots, nvtxExtModuleSegment_t, functionSlots);

SAME(uint32_t(kExtended), uint32_t(NVTX_PAYLOAD_TYPE_EXT));
SAME(kPayloadModule, NVTX_EXT_PAYLOAD_MODULEID);
SAME(kRegisterSchema, NVTX3EXT_CBID_nvtxPayloadSchemaRegister);
SAME(kRegisterEnumeration, NVTX3EXT_CBID_nvtxPayloadEnumRegister);
SAME(kSchemaHasId, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID);
SAME(kEnumerationHasId, NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID);
SAME(kFirstDynamicId, NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START);
SAME(kEntryIsElsewhere, NVTX_PAYLOAD_ENTRY_FLAG_POINTER | NVTX_PAYLOAD_ENTRY_FLAG_OFFSET_FROM_BASE |
                            NVTX_PAYLOAD_ENTRY_FLAG_OFFSET_FROM_HERE);
SAME(kEntryIsArray, NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE |
                        NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_ZERO_TERMINATED |
                        NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_PAYLOAD_INDEX);
SAME(kUnion, NVTX_PAYLOAD_SCHEMA_TYPE_UNION);
SAME(kSelectedUnion, NVTX_PAYLOAD_SCHEMA_TYPE_UNION_WITH_INTERNAL_SELECTOR);
SAME(kEntryIsPointer, NVTX_PAYLOAD_ENTRY_FLAG_POINTER);
SAME(kEntryIsFixedArray, NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE);
SAME(kChar, NVTX_PAYLOAD_ENTRY_TYPE_CHAR);
SAME(kUlongLong, NVTX_PAYLOAD_ENTRY_TYPE_ULONGLONG);
SAME(kInt8, NVTX_PAYLOAD_ENTRY_TYPE_INT8);
SAME(kUint64, NVTX_PAYLOAD_ENTRY_TYPE_UINT64);
SAME(kSingle, NVTX_PAYLOAD_ENTRY_TYPE_FLOAT);
SAME(kReal, NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE);
SAME(kSize, NVTX_PAYLOAD_ENTRY_TYPE_SIZE);
SAME(kAddress, NVTX_PAYLOAD_ENTRY_TYPE_ADDRESS);
SAME(kFloat32, NVTX_PAYLOAD_ENTRY_TYPE_FLOAT32);
SAME(kFloat64, NVTX_PAYLOAD_ENTRY_TYPE_FLOAT64);
SAME(kText, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING);
SAME(kUtf8, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF8);

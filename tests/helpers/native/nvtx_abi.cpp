// nvtx/abi.h against the headers of NVTX.
#include <cstddef>

#include <nvtx3/nvToolsExt.h>

#include "nvtx/abi.h"

using namespace epprof::nvtx;

#define SAME_FIELD(ours, theirs)                                                      \
  static_assert(offsetof(EventAttributes, ours) == offsetof(nvtxEventAttributes_t, theirs)); \
  static_assert(sizeof(EventAttributes::ours) == sizeof(nvtxEventAttributes_t::theirs))
#define SAME(ours, theirs) static_assert(int(ours) == int(theirs))

static_assert(sizeof(EventAttributes) == sizeof(nvtxEventAttributes_t));
SAME_FIELD(version, version);
SAME_FIELD(size, size);
SAME_FIELD(category, category);
SAME_FIELD(color_type, colorType);
SAME_FIELD(color, color);
SAME_FIELD(payload_type, payloadType);
SAME_FIELD(payload_count, reserved0);
SAME_FIELD(payload, payload);
SAME_FIELD(message_type, messageType);
SAME_FIELD(message, message);

SAME(kArgb, NVTX_COLOR_ARGB);
SAME(kUnsigned64, NVTX_PAYLOAD_TYPE_UNSIGNED_INT64);
SAME(kSigned64, NVTX_PAYLOAD_TYPE_INT64);
SAME(kDouble, NVTX_PAYLOAD_TYPE_DOUBLE);
SAME(kUnsigned32, NVTX_PAYLOAD_TYPE_UNSIGNED_INT32);
SAME(kSigned32, NVTX_PAYLOAD_TYPE_INT32);
SAME(kFloat, NVTX_PAYLOAD_TYPE_FLOAT);
SAME(kAscii, NVTX_MESSAGE_TYPE_ASCII);
SAME(kUnicode, NVTX_MESSAGE_TYPE_UNICODE);
SAME(kRegistered, NVTX_MESSAGE_TYPE_REGISTERED);
SAME(kNoTracking, NVTX_NO_PUSH_POP_TRACKING);

SAME(kMarkEx, NVTX_CBID_CORE_MarkEx);
SAME(kRangeStartEx, NVTX_CBID_CORE_RangeStartEx);
SAME(kRangeEnd, NVTX_CBID_CORE_RangeEnd);
SAME(kRangePushEx, NVTX_CBID_CORE_RangePushEx);
SAME(kRangePop, NVTX_CBID_CORE_RangePop);
SAME(kNameCategoryA, NVTX_CBID_CORE_NameCategoryA);
SAME(kNameOsThreadW, NVTX_CBID_CORE_NameOsThreadW);
SAME(kCoreSize, NVTX_CBID_CORE_SIZE);
SAME(kDomainMarkEx, NVTX_CBID_CORE2_DomainMarkEx);
SAME(kDomainRangePop, NVTX_CBID_CORE2_DomainRangePop);
SAME(kDomainNameCategoryA, NVTX_CBID_CORE2_DomainNameCategoryA);
SAME(kDomainRegisterStringW, NVTX_CBID_CORE2_DomainRegisterStringW);
SAME(kDomainCreateA, NVTX_CBID_CORE2_DomainCreateA);
SAME(kInitialize, NVTX_CBID_CORE2_Initialize);
SAME(kCore2Size, NVTX_CBID_CORE2_SIZE);
SAME(kCoreModule, NVTX_CB_MODULE_CORE);
SAME(kCore2Module, NVTX_CB_MODULE_CORE2);
SAME(kCallbacks, NVTX_ETID_CALLBACKS);
static_assert(sizeof(Callbacks) == sizeof(NvtxExportTableCallbacks));
static_assert(offsetof(Callbacks, function_table) ==
              offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable));

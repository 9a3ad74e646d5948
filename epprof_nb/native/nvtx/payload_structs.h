// Payloads of ranges and marks that are structs with a schema, such as NCCL's. Plain numbers:
// range_details.h.
#pragma once

#include "nvtx/range_details.h"

namespace epprof::nvtx {

// Id of the payloads as the text of a JSON object; 0 if no entry can be read, or if the process
// already keeps the maximum number of distinct payloads.
uint32_t extended_payload(const Domain* domain, const EventAttributes* attributes);

// Receives the schemas of a copy of NVTX; false if the module is another extension.
bool attach_extension(ExtensionModule* module);

}  // namespace epprof::nvtx

// Streams of the host device.
#pragma once

#include "ep/runtime.h"

namespace epprof::ep {

SyncStreamImpl* make_host_stream();

}  // namespace epprof::ep

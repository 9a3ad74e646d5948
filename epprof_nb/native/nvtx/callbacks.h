// The functions that a copy of NVTX calls.
#pragma once

#include "nvtx/abi.h"

namespace epprof::nvtx {

struct Table {
  FunctionTable functions = nullptr;
  unsigned size = 0;
};

struct CallbackTables {
  Table core, core2;

  // Functions that NVTX always calls, because their results outlive a recording.
  void set_names() const;
  // Functions that NVTX calls while recording.
  void set_ranges(bool on) const;
};

}  // namespace epprof::nvtx

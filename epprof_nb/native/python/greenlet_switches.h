// Greenlets: reports to the core which greenlet a thread runs.
#pragma once

#include "python/convert.h"

// Null unless the module greenlet is imported and a recording follows its switches.
extern PyObject* (*current_greenlet)(void);
void see_current_greenlet(void);  // preserves the exception state

// To call before ops open and after they end, while Python runs. It also detects unreported
// switches. Programs without greenlets only pay for the comparison.
static inline void see_greenlet(void) {
  if (current_greenlet) see_current_greenlet();
}

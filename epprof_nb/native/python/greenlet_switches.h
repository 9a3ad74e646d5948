// Greenlets: the core learns which one a thread runs.
#pragma once

#include "python/convert.h"

// Null unless the module greenlet is imported and a recording follows its switches.
extern PyObject* (*current_greenlet)(void);
void see_current_greenlet(void);  // leaves the exception state as it is

// To be called before ops open and after they end, where Python runs: it also notices switches that
// were not reported. Programs without greenlets pay for the comparison.
static inline void see_greenlet(void) {
  if (current_greenlet) see_current_greenlet();
}

// Ctrl-C and code that it must not interrupt.
#pragma once

#include "python/convert.h"

int interrupts_add(PyObject* module);  // adds the functions and the type; -1 on failure

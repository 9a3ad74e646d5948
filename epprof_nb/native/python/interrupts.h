// Ctrl-C and the code that must not be cut in two.
#pragma once

#include "python/convert.h"

int interrupts_add(PyObject* module);  // adds the functions and the type; -1 on failure

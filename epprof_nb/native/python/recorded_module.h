// The type `RecordedModule` of _native.
#pragma once

#include "python/op_object.h"

#include <structmember.h>

int recorded_module_type_create(PyObject* module);

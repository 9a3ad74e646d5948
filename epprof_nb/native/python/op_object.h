// The type `Op` of _native, which users know as epprof_nb.op.
#pragma once

#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

PyObject* op_type_create(PyObject* module);  // new reference to the type
// Sets `id` to the id of the calling frame if it is a generator's or coroutine's, otherwise to 0.
// Returns -1 with an exception set on failure. `suspendable_frame` calls the suspender with the
// frame, which runs Python code.
int generator_frame(uint64_t* id);
int suspendable_frame(uint64_t* id);
// Resumes the ops of the calling frame if they are suspended, and calls the suspender. A profile
// function, on Python 3.11, misses a resumption on another thread, or while it is not set.
int resume_unseen_frame(void);

// Returns an op of the category kTask.
PyObject* op_task(PyObject* module, PyObject* args, PyObject* kwargs);
PyObject* op_set_decorator(PyObject* module, PyObject* function);
PyObject* op_set_suspender(PyObject* module, PyObject* function);
PyObject* op_set_args_formatter(PyObject* module, PyObject* function);
PyObject* op_set_hooks(PyObject* module, PyObject* args);
PyObject* op_spin(PyObject* module, PyObject* args);

// Forgets the names and arguments of ops. To call when a session begins and ends.
int op_start_session(void);
// Adds the names and arguments that drained ops refer to.
int op_add_session(PyObject* columns);

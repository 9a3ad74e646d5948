// The functions of _native over nvtx/api.h.
#include "python/convert.h"

#include "nvtx/api.h"

static PyObject* nvtx_allow(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  epprof_nvtx_allow();
  Py_RETURN_NONE;
}

static PyObject* nvtx_record(PyObject* Py_UNUSED(m), PyObject* value) {
  int on = PyObject_IsTrue(value);
  if (on < 0) return NULL;
  epprof_nvtx_record(on);
  Py_RETURN_NONE;
}

static void append_path(const char* path, void* data) {
  PyObject** list = data;
  if (!*list) return;
  PyObject* text = PyUnicode_DecodeFSDefault(path);
  if (!text || PyList_Append(*list, text) < 0) Py_CLEAR(*list);
  Py_XDECREF(text);
}

static PyObject* nvtx_attached(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  PyObject* list = PyList_New(0);
  epprof_nvtx_attached(append_path, &list);
  return list;
}

static PyObject* nvtx_details(PyObject* Py_UNUSED(m), PyObject* value) {
  uint32_t first;
  if (to_u32(value, &first) < 0) return NULL;
  return columns_to_dict(epprof_nvtx_details(first));
}

static PyObject* nvtx_dropped(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return Py_BuildValue("KK", (unsigned long long)epprof_nvtx_dropped_details(),
                       (unsigned long long)epprof_nvtx_dropped_payloads());
}

static PyObject* xla_compiling(PyObject* Py_UNUSED(m), PyObject* value) {
  int on = value == Py_None ? 0 : PyObject_IsTrue(value);
  if (on < 0) return NULL;
  epprof_xla_compiling(value == Py_None ? 0 : on ? 1 : -1);
  Py_RETURN_NONE;
}

PyMethodDef nvtx_functions[] = {
    {"nvtx_allow", nvtx_allow, METH_NOARGS, NULL},
    {"nvtx_record", nvtx_record, METH_O, NULL},
    {"nvtx_attached", nvtx_attached, METH_NOARGS, NULL},
    {"nvtx_details", nvtx_details, METH_O, NULL},
    {"nvtx_dropped", nvtx_dropped, METH_NOARGS, NULL},
    {"xla_compiling", xla_compiling, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

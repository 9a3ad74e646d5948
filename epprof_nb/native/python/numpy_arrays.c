#include "python/numpy_arrays.h"

enum { kArrayType = 2, kArrayNew = 93, kNewCopy = 85 };                     // slots of the table
enum { kContiguous = 0x1, kFortran = 0x2, kAligned = 0x100, kWritable = 0x400 };  // flags
enum { kMaxRank = 32 };                                     // of every NumPy from 1.26

typedef PyObject* (*array_new_function)(PyTypeObject*, int rank, const intptr_t* dims, int type,
                                        const intptr_t* strides, void* data, int item_size,
                                        int flags, PyObject* object);
typedef PyObject* (*new_copy_function)(PyObject* array, int order);

static void** table;

// By ONNX's element type. Types from 16 on are dtypes of ml_dtypes, if it is installed.
static int types[] = {-1, 11, 2, 1, 4, 3, 5, 7, -1, 0, 23, 12, 6, 8, -1, -1, -1, -1, -1, -1, -1};

int numpy_add_type(int32_t onnx_type, int type) {
  if (onnx_type < 16 || onnx_type >= (int32_t)(sizeof types / sizeof *types)) return -1;
  types[onnx_type] = type;
  return 0;
}

int numpy_type_of(int32_t onnx_type) {
  if (onnx_type < 0 || onnx_type >= (int32_t)(sizeof types / sizeof *types)) return -1;
  return types[onnx_type];
}

int numpy_load(void) {
  if (table) return 0;
  PyObject* module = PyImport_ImportModule("numpy._core._multiarray_umath");
  if (!module) {  // NumPy 1
    PyErr_Clear();
    module = PyImport_ImportModule("numpy.core._multiarray_umath");
  }
  PyObject* capsule = module ? PyObject_GetAttrString(module, "_ARRAY_API") : NULL;
  Py_XDECREF(module);
  if (capsule) table = PyCapsule_GetPointer(capsule, NULL);
  Py_XDECREF(capsule);
  return table ? 0 : -1;
}

PyObject* numpy_view(const ep_tensor* tensor, int writable) {
  static char no_data[64];
  intptr_t dims[kMaxRank];
  int type = numpy_type_of(tensor->type);
  if (type < 0) {
    return PyErr_Format(PyExc_TypeError, "tensors of ONNX's element type %d have no NumPy dtype",
                        (int)tensor->type);
  }
  if (tensor->rank > kMaxRank) {
    return PyErr_Format(PyExc_ValueError, "a tensor has %zu dimensions; NumPy allows %d",
                        tensor->rank, kMaxRank);
  }
  for (size_t i = 0; i < tensor->rank; i++) dims[i] = (intptr_t)tensor->dims[i];
  array_new_function array_new = (array_new_function)table[kArrayNew];
  int flags = kContiguous | kAligned | (writable ? kWritable : 0);
  return array_new((PyTypeObject*)table[kArrayType], (int)tensor->rank, dims, type, NULL,
                   tensor->data ? tensor->data : no_data, 0, flags, NULL);
}

PyObject* numpy_copy(const ep_tensor* tensor) {
  PyObject* view = numpy_view(tensor, 0);
  if (!view) return NULL;
  PyObject* copy = ((new_copy_function)table[kNewCopy])(view, 0);
  Py_DECREF(view);
  return copy;
}

#include "python/output_checks.h"

static PyObject* name_dtype;

int output_checks_create(void) {
  name_dtype = PyUnicode_InternFromString("dtype");
  return name_dtype ? 0 : -1;
}

// "(2, ?, 4)": the shape in the model.
static PyObject* shape_text(const int64_t* dims, size_t rank) {
  PyObject* parts = PyList_New(0);
  for (size_t i = 0; parts && i < rank; i++) {
    PyObject* part = dims[i] < 0 ? PyUnicode_FromString("?")
                                 : PyUnicode_FromFormat("%lld", (long long)dims[i]);
    if (!part || PyList_Append(parts, part) < 0) Py_CLEAR(parts);
    Py_XDECREF(part);
  }
  PyObject* comma = PyUnicode_FromString(", ");
  PyObject* joined = parts && comma ? PyUnicode_Join(comma, parts) : NULL;
  PyObject* text = joined ? PyUnicode_FromFormat(rank == 1 ? "(%U,)" : "(%U)", joined) : NULL;
  Py_XDECREF(parts);
  Py_XDECREF(comma);
  Py_XDECREF(joined);
  return text;
}

int parse_shape(PyObject* shape, int64_t* dims, size_t* rank) {
  if (PyLong_Check(shape)) {
    dims[0] = PyLong_AsLongLong(shape);
    *rank = 1;
  } else {
    Py_ssize_t length = PySequence_Size(shape);
    if (length < 0) {
      PyErr_Clear();
      PyErr_SetString(PyExc_TypeError, "ctx.out takes a shape: a tuple of integers");
      return -1;
    }
    if (length > kMaxRank) {
      PyErr_Format(PyExc_ValueError, "a shape with %zd dimensions; NumPy allows %d", length,
                   kMaxRank);
      return -1;
    }
    for (Py_ssize_t i = 0; i < length; i++) {
      PyObject* item = PySequence_GetItem(shape, i);
      PyObject* number = item ? PyNumber_Index(item) : NULL;
      Py_XDECREF(item);
      if (!number) return -1;
      dims[i] = PyLong_AsLongLong(number);
      Py_DECREF(number);
      if (dims[i] == -1 && PyErr_Occurred()) return -1;
    }
    *rank = (size_t)length;
  }
  for (size_t i = 0; i < *rank; i++) {
    if (dims[i] < 0) {
      if (!PyErr_Occurred()) {
        PyErr_Format(PyExc_ValueError, "ctx.out: dimension %zu is negative (%lld)", i,
                     (long long)dims[i]);
      }
      return -1;
    }
  }
  return 0;
}

int check_shape(const expected_output* output, const int64_t* dims, size_t rank, size_t index) {
  if (!output->has_shape) return 0;
  int same = rank == output->rank;
  for (size_t i = 0; same && i < rank; i++) {
    same = output->dims[i] < 0 || output->dims[i] == dims[i];
  }
  if (same) return 0;
  PyObject* expected = shape_text(output->dims, output->rank);
  PyObject* given = shape_text(dims, rank);
  if (expected && given) {
    PyErr_Format(PyExc_ValueError, "output %zu (%s) has the shape %U in the model, not %U", index,
                 output->name, expected, given);
  }
  Py_XDECREF(expected);
  Py_XDECREF(given);
  return -1;
}

// "float64" for "f8", np.float64 and float.
static PyObject* dtype_of(PyObject* given) {
  PyObject* numpy = PyImport_ImportModule("numpy");
  PyObject* dtype = numpy ? PyObject_CallMethod(numpy, "dtype", "O", given) : NULL;
  Py_XDECREF(numpy);
  if (dtype) return dtype;
  PyErr_Clear();
  Py_INCREF(given);
  return given;
}

int check_dtype(const expected_output* output, PyObject* array, PyObject* dtype, size_t index) {
  PyObject* actual = PyObject_GetAttr(array, name_dtype);
  if (!actual) return -1;
  int same = actual == dtype ? 1 : PyObject_RichCompareBool(actual, dtype, Py_EQ);
  if (same == 0) {
    PyObject* given = dtype_of(dtype);
    PyErr_Format(PyExc_TypeError, "output %zu (%s) is %S in the model, not %S", index,
                 output->name, actual, given);
    Py_DECREF(given);
  }
  if (same < 0) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "ctx.out: %R is not a dtype", dtype);
  }
  Py_DECREF(actual);
  return same > 0 ? 0 : -1;
}

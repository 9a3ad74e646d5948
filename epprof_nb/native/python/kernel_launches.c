#include "python/kernel_launches.h"

#include <stdlib.h>
#include <string.h>

static PyObject *kernel_name, *pointer_name, *data_name, *nbytes_name, *cooperative_name, *own_name;

int launches_create(void) {
  kernel_name = PyUnicode_InternFromString("kernel");
  pointer_name = PyUnicode_InternFromString("ptr");
  data_name = PyUnicode_InternFromString("data");
  nbytes_name = PyUnicode_InternFromString("nbytes");
  cooperative_name = PyUnicode_InternFromString("enable_cooperative_groups");
  own_name = PyUnicode_InternFromString("name");
  return kernel_name && pointer_name && data_name && nbytes_name && cooperative_name && own_name
             ? 0
             : -1;
}

// New reference; null without an exception if the object has no such attribute.
static PyObject* attribute(PyObject* object, PyObject* name) {
  PyObject* found = PyObject_GetAttr(object, name);
  if (!found && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
  return found;
}

// The address in an attribute `ptr`. Returns 1 if it is an integer, 0, or -1 with an exception.
static int pointer_of(PyObject* object, void** pointer) {
  PyObject* number = attribute(object, pointer_name);
  if (!number) return PyErr_Occurred() ? -1 : 0;
  PyObject* address = PyIndex_Check(number) ? PyNumber_Index(number) : NULL;
  Py_DECREF(number);
  if (!address) return PyErr_Occurred() ? -1 : 0;
  *pointer = PyLong_AsVoidPtr(address);
  Py_DECREF(address);
  return PyErr_Occurred() ? -1 : 1;
}

enum { kFewBytes = 16 };
typedef struct {
  ep_argument arguments[EP_MOST_ARGUMENTS];
  union {
    char bytes[kFewBytes];
    int64_t integer;
    double number;
    void* pointer;
  } values[EP_MOST_ARGUMENTS];
  address_argument address;
} packed_arguments;

static int set_pointer(packed_arguments* packed, size_t i, ep_argument_source source, size_t index,
                       size_t offset, void* pointer) {
  packed->values[i].pointer = pointer;
  packed->arguments[i] = (ep_argument){source, index, offset, &packed->values[i], sizeof pointer};
  return 0;
}

static int find_array(PyObject* value, const launch_arrays* among, ep_argument_source source,
                      packed_arguments* packed, size_t i) {
  for (size_t k = 0; k < among->count; k++) {
    if (among->arrays[k] != value || !among->tensors[k].on_device) continue;
    set_pointer(packed, i, source, k, 0, among->tensors[k].data);
    return 1;
  }
  return 0;
}

// Sets an argument to a tensor that holds an address and the bytes after it. Returns the number of
// such tensors.
static int count_holders(const launch_arrays* among, ep_argument_source source, char* pointer,
                         size_t bytes, packed_arguments* packed, size_t i) {
  int holders = 0;
  for (size_t k = 0; k < among->count; k++) {
    const ep_tensor* tensor = &among->tensors[k];
    char* begin = tensor->data;
    if (!among->arrays[k] || !tensor->on_device || !tensor->bytes || pointer < begin ||
        pointer + (bytes ? bytes : 1) > begin + tensor->bytes) {
      continue;
    }
    holders++;
    set_pointer(packed, i, source, k, (size_t)(pointer - begin), pointer);
  }
  return holders;
}

// A view of a tensor, or other memory. Returns 0, or -1 with an exception.
static int pack_address(void* pointer, size_t bytes, const launch_arrays* inputs,
                        const launch_arrays* outputs, packed_arguments* packed, size_t i) {
  int holders = count_holders(inputs, EP_OF_INPUT, pointer, bytes, packed, i) +
                count_holders(outputs, EP_OF_OUTPUT, pointer, bytes, packed, i);
  return holders == 1 ? 0 : set_pointer(packed, i, EP_OTHER_MEMORY, 0, 0, pointer);
}

// An integer may be an address, such as `x.data.ptr`. Notes an address of a tensor. For other
// device memory, the launch refers to that memory.
static void check_integer(const launch_arrays* inputs, const launch_arrays* outputs,
                          packed_arguments* packed, size_t i) {
  enum { kLeast = 1 << 30 };  // smallest address; smaller integers are not looked up
  char* pointer = packed->values[i].pointer;
  ep_argument integer = packed->arguments[i];
  if ((uint64_t)(uintptr_t)pointer < kLeast) return;
  if (count_holders(inputs, EP_OF_INPUT, pointer, 0, packed, i) ||
      count_holders(outputs, EP_OF_OUTPUT, pointer, 0, packed, i)) {
    const ep_argument* found = &packed->arguments[i];
    packed->address = (address_argument){1, i, found->source == EP_OF_OUTPUT, found->index};
  } else if (ep_cuda_device_at(pointer) >= 0) {
    integer.source = EP_OTHER_MEMORY;
  }
  packed->arguments[i] = integer;
}

int check_repeated(const address_argument* address) {
  if (!address->is_given) return 0;
  PyErr_Format(PyExc_TypeError,
               "argument %zu of a launch is an integer, the address of memory of %s %zu. With "
               "ctx.repeat_launches(), later runs would use the same address, although their arrays "
               "lie elsewhere. Pass the array or a view of it, or do not call "
               "ctx.repeat_launches()",
               address->argument, address->is_of_output ? "output" : "input", address->tensor);
  return -1;
}

static int refuse(PyObject* value, size_t i) {
  if (PyErr_Occurred()) return -1;
  PyErr_Format(PyExc_TypeError,
               "argument %zu of the launch is %R. A kernel takes arrays in device memory, numbers "
               "of Python and NumPy, and None, which is a null pointer",
               i, (PyObject*)Py_TYPE(value));
  return -1;
}

// Whether a format of the buffer protocol is a number. Formats of texts and records have more
// characters, and complex numbers have a Z.
static int is_number(const char* format) {
  if (!format) return 0;
  if (*format == 'Z') format++;
  return *format && !format[1] && strchr("?bBhHiIlLqQefdg", *format) != NULL;
}

// A NumPy scalar. Returns 0, or -1 with an exception. Without a readable buffer, returns -1 without
// one.
static int pack_buffer(PyObject* value, const launch_arrays* inputs, const launch_arrays* outputs,
                       packed_arguments* packed, size_t i) {
  Py_buffer view;
  if (PyObject_GetBuffer(value, &view, PyBUF_FULL_RO) < 0) {
    PyErr_Clear();
    return -1;
  }
  size_t bytes = (size_t)view.len;
  int is_scalar = view.ndim == 0 && bytes && bytes <= kFewBytes && is_number(view.format);
  int is_integer = is_scalar && bytes == sizeof(int64_t) && strchr("lLqQ", *view.format);
  if (is_scalar) memcpy(packed->values[i].bytes, view.buf, bytes);
  PyBuffer_Release(&view);
  packed->arguments[i] = (ep_argument){EP_CONSTANT, 0, 0, &packed->values[i], bytes};
  if (is_integer) check_integer(inputs, outputs, packed, i);
  return is_scalar ? 0 : refuse(value, i);
}

static int pack_memory(PyObject* value, const launch_arrays* inputs, const launch_arrays* outputs,
                       packed_arguments* packed, size_t i) {
  PyObject* data = attribute(value, data_name);  // of an array; a pointer object has none
  void* pointer = NULL;
  int found = PyErr_Occurred() ? -1 : pointer_of(data ? data : value, &pointer);
  PyObject* nbytes = data && found > 0 ? attribute(value, nbytes_name) : NULL;
  size_t bytes = nbytes ? PyLong_AsSize_t(nbytes) : 0;
  Py_XDECREF(nbytes);
  Py_XDECREF(data);
  if (found <= 0 || PyErr_Occurred()) return refuse(value, i);
  return pack_address(pointer, bytes, inputs, outputs, packed, i);
}

void note_library_launch_of(ep_call* call, const launch_arrays* inputs, const launch_arrays* outputs,
                            const ep_library_launch* launch, void* const* addresses, size_t count,
                            int is_on_stream) {
  packed_arguments packed;
  for (size_t i = 0; i < count && i < EP_MOST_ARGUMENTS; i++) {
    if (!is_on_stream) {
      set_pointer(&packed, i, EP_OTHER_MEMORY, 0, 0, addresses[i]);
    } else if (addresses[i]) {
      pack_address(addresses[i], 0, inputs, outputs, &packed, i);
    } else {
      set_pointer(&packed, i, EP_CONSTANT, 0, 0, NULL);
    }
  }
  ep_library_launch noted = *launch;
  noted.arguments = packed.arguments;
  noted.argument_count = count;
  ep_call_note_library_launch(call, &noted);
}

// Whether an object is an array in device memory. CuPy's arrays have the buffer protocol, but
// refuse it.
static int is_array(PyObject* value, const launch_arrays* among) {
  for (size_t k = 0; k < among->count; k++) {
    if (!among->arrays[k] || !among->tensors[k].on_device) continue;
    return Py_TYPE(value) == Py_TYPE(among->arrays[k]);
  }
  return 0;
}

// Values have the same sizes as in CuPy.
static int pack(PyObject* value, const launch_arrays* inputs, const launch_arrays* outputs,
                packed_arguments* packed, size_t i) {
  if (find_array(value, inputs, EP_OF_INPUT, packed, i) ||
      find_array(value, outputs, EP_OF_OUTPUT, packed, i)) {
    return 0;
  }
  size_t bytes = sizeof(int64_t);
  if (value == Py_None) {
    packed->values[i].pointer = NULL;
  } else if (PyBool_Check(value)) {
    packed->values[i].bytes[0] = value == Py_True;
    bytes = 1;
  } else if (PyLong_Check(value)) {
    packed->values[i].integer = PyLong_AsLongLong(value);
  } else if (PyFloat_Check(value) && !PyObject_CheckBuffer(value)) {
    packed->values[i].number = PyFloat_AsDouble(value);
  } else if (PyComplex_Check(value)) {
    double parts[] = {PyComplex_RealAsDouble(value), PyComplex_ImagAsDouble(value)};
    bytes = sizeof parts;
    memcpy(packed->values[i].bytes, parts, bytes);
  } else if (!is_array(value, inputs) && !is_array(value, outputs) &&
             PyObject_CheckBuffer(value) &&
             (pack_buffer(value, inputs, outputs, packed, i) == 0 || PyErr_Occurred())) {
    return PyErr_Occurred() ? -1 : 0;
  } else {
    return pack_memory(value, inputs, outputs, packed, i);
  }
  packed->arguments[i] = (ep_argument){EP_CONSTANT, 0, 0, &packed->values[i], bytes};
  if (PyErr_Occurred()) return -1;
  if (PyLong_Check(value) && !PyBool_Check(value)) check_integer(inputs, outputs, packed, i);
  return 0;
}

// An integer between two limits. Returns 0, or -1 with an exception that shows `given`.
static int parse_integer(PyObject* item, const char* name, PyObject* given, unsigned least,
                         unsigned* value) {
  PyObject* index = PyNumber_Index(item);
  if (!index) return -1;
  int overflow = 0;
  long long number = PyLong_AsLongLongAndOverflow(index, &overflow);
  Py_DECREF(index);
  if (overflow || number < (long long)least || number > 0x7fffffff) {
    PyErr_Format(PyExc_ValueError, "%s of the launch is %R; sizes are from %u to 2,147,483,647",
                 name, given, least);
    return -1;
  }
  *value = (unsigned)number;
  return 0;
}

// One to three numbers; missing ones are 1.
static int parse_sizes(PyObject* given, const char* name, unsigned* sizes) {
  Py_ssize_t count = PyTuple_Check(given) ? PyTuple_Size(given) : PyIndex_Check(given) ? 1 : 0;
  if (count < 1 || count > 3) {
    PyErr_Format(PyExc_TypeError, "%s of the launch is a tuple of one to three integers, not %R",
                 name, given);
    return -1;
  }
  for (Py_ssize_t i = 0; i < 3; i++) {
    sizes[i] = 1;
    if (i >= count) continue;
    PyObject* item = PyTuple_Check(given) ? PyTuple_GetItem(given, i) : given;
    if (parse_integer(item, name, given, 1, &sizes[i]) < 0) return -1;
  }
  return 0;
}

// The object with the handle of a kernel, a CUfunction. For CuPy's RawKernel, the function for the
// current device, compiled if necessary; otherwise the given object. New reference.
static PyObject* loaded_function(PyObject* kernel, void** function) {
  PyObject* loaded = attribute(kernel, kernel_name);
  if (loaded) {
    PyObject* cooperative = attribute(kernel, cooperative_name);
    int refused = cooperative ? PyObject_IsTrue(cooperative) : 0;
    Py_XDECREF(cooperative);
    if (refused > 0) {
      PyErr_SetString(PyExc_TypeError,
                      "ctx.launch makes no cooperative launches. Call the kernel itself");
    }
  } else if (!PyErr_Occurred()) {
    Py_INCREF(kernel);
    loaded = kernel;
  }
  int found = loaded && !PyErr_Occurred() ? pointer_of(loaded, function) : -1;
  if (found > 0 && *function) return loaded;
  Py_XDECREF(loaded);
  if (!PyErr_Occurred()) {
    PyErr_Format(PyExc_TypeError,
                 "ctx.launch takes a cupy.RawKernel, or an object whose attribute `ptr` is the "
                 "address of a CUfunction, not %R",
                 (PyObject*)Py_TYPE(kernel));
  }
  return NULL;
}

static char* name_of(PyObject* kernel) {
  PyObject* name = attribute(kernel, own_name);
  const char* text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
  char* copy = strdup(text ? text : "a kernel");
  PyErr_Clear();
  Py_XDECREF(name);
  return copy;
}

static PyObject* launch_function(ep_call* call, PyObject* kernel, ep_launch* launch) {
  PyObject* owner = loaded_function(kernel, &launch->function);
  if (!owner) return NULL;
  char *name = name_of(kernel), *failed;
  launch->owner = owner;
  launch->name = name;
  Py_BEGIN_ALLOW_THREADS  // the stream's queue may be full of work that needs the GIL
  failed = ep_call_launch(call, launch);
  Py_END_ALLOW_THREADS
  if (!failed) ep_call_note_launch(call, launch);
  free(name);
  Py_DECREF(owner);
  if (failed) return raise_message(failed);
  Py_RETURN_NONE;
}

PyObject* launch_kernel(ep_call* call, const launch_arrays* inputs, const launch_arrays* outputs,
                        PyObject* const* args, Py_ssize_t count, PyObject* keywords,
                        address_argument* address) {
  Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
  PyObject* shared = count == 5 ? args[4] : NULL;
  if (named == 1 && count == 4 &&
      !PyUnicode_CompareWithASCIIString(PyTuple_GetItem(keywords, 0), "shared_mem")) {
    shared = args[4];
  } else if (named || count < 4 || count > 5) {
    PyErr_SetString(PyExc_TypeError,
                    "ctx.launch(kernel, grid, block, args, shared_mem=0) takes a kernel, two "
                    "tuples of sizes and a tuple of arguments");
    return NULL;
  }
  ep_launch launch = {0};
  packed_arguments packed;
  packed.address.is_given = 0;
  PyObject* given = args[3];
  Py_ssize_t length = PyTuple_Check(given) ? PyTuple_Size(given) : -1;
  if (length < 0) {
    return PyErr_Format(PyExc_TypeError,
                        "the arguments of the launch are a tuple of at most %d values, not %R",
                        EP_MOST_ARGUMENTS, (PyObject*)Py_TYPE(given));
  }
  if (length > EP_MOST_ARGUMENTS) {
    return PyErr_Format(PyExc_ValueError,
                        "the launch has %zd arguments; ctx.launch takes at most %d", length,
                        EP_MOST_ARGUMENTS);
  }
  if (parse_sizes(args[1], "the grid", launch.grid) < 0 ||
      parse_sizes(args[2], "the block", launch.block) < 0) {
    return NULL;
  }
  if (shared && parse_integer(shared, "shared_mem", shared, 0, &launch.shared_bytes) < 0) {
    return NULL;
  }
  for (Py_ssize_t i = 0; i < length; i++) {
    PyObject* value = PyTuple_GetItem(given, i);
    if (pack(value, inputs, outputs, &packed, (size_t)i) < 0) return NULL;
  }
  if (packed.address.is_given) *address = packed.address;
  if (ep_call_repeats(call) && check_repeated(address) < 0) return NULL;
  launch.arguments = packed.arguments;
  launch.argument_count = (size_t)length;
  return launch_function(call, args[0], &launch);
}

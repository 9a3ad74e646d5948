// The functions of _native over the products of ep/api.h.
#include "python/convert.h"

#include "ep/api.h"
#include "python/kernel_launches.h"

static const char kProduct[] = "epprof_nb.ep_product";

static PyObject* open_cublaslt(PyObject* Py_UNUSED(m), PyObject* path) {
  const char* text = PyUnicode_AsUTF8AndSize(path, NULL);
  if (!text) return NULL;
  char* failed = ep_open_cublaslt(text);
  if (failed) return raise_message(failed);
  Py_RETURN_NONE;
}

static void free_product(PyObject* capsule) {
  ep_product_free(PyCapsule_GetPointer(capsule, kProduct));
}

static PyObject* make_product(PyObject* Py_UNUSED(m), PyObject* args) {
  ep_product_spec spec = {0};
  long long rows, columns, depth, a_leading, a_step, b_leading, b_step;
  unsigned long long most_workspace;
  if (!PyArg_ParseTuple(args, "i(iiii)(LLLi)(pLL)(pLL)ddpK", &spec.device, &spec.type,
                        &spec.result_type, &spec.compute, &spec.scale, &rows, &columns, &depth,
                        &spec.batch, &spec.a.transposed, &a_leading, &a_step, &spec.b.transposed,
                        &b_leading, &b_step, &spec.alpha, &spec.beta, &spec.has_bias,
                        &most_workspace)) {
    return NULL;
  }
  spec.rows = rows;
  spec.columns = columns;
  spec.depth = depth;
  spec.a.leading = a_leading;
  spec.a.step = a_step;
  spec.b.leading = b_leading;
  spec.b.step = b_step;
  spec.most_workspace = most_workspace;
  ep_product* product;
  char* failed = ep_product_new(&spec, &product);
  if (failed) return raise_message(failed);
  if (!product) Py_RETURN_NONE;
  return Py_BuildValue("(Nn)", PyCapsule_New(product, kProduct, free_product),
                       (Py_ssize_t)ep_product_workspace_bytes(product));
}

enum { kProductTensors = 5, kProductAddresses = 7 };

static int repeat_product(void* product, void* const* at, void* workspace, void* stream) {
  return ep_product_launch(product, at[0], at[1], at[2], at[3], at[4], workspace, stream);
}

static void note_product(PyObject* capsule, ep_product* product, void* const* at, void* stream) {
  ep_library_launch launch = {.launch = repeat_product,
                              .object = product,
                              .owner = capsule,
                              .name = "cublasLtMatmul",
                              .workspace_bytes = ep_product_workspace_bytes(product),
                              .alignment = EP_PRODUCT_ALIGNMENT};
  note_library_launch(&launch, at, kProductTensors, stream);
}

static PyObject* launch_product(PyObject* Py_UNUSED(m), PyObject* const* args, Py_ssize_t count) {
  if (count != 1 + kProductAddresses) {
    return PyErr_Format(PyExc_TypeError, "ep_launch_product takes %d arguments, not %zd",
                        1 + kProductAddresses, count);
  }
  ep_product* product = PyCapsule_GetPointer(args[0], kProduct);
  if (!product) return NULL;
  void* at[kProductAddresses];
  for (int i = 0; i < kProductAddresses; i++) {
    at[i] = PyLong_AsVoidPtr(args[i + 1]);
    if (!at[i] && PyErr_Occurred()) return NULL;
  }
  int status;
  Py_BEGIN_ALLOW_THREADS  // a launch may wait for a device whose work needs the GIL
  status = ep_product_launch(product, at[0], at[1], at[2], at[3], at[4], at[5], at[6]);
  Py_END_ALLOW_THREADS
  if (!status) note_product(args[0], product, at, at[6]);
  return PyLong_FromLong(status);
}

PyMethodDef product_functions[] = {
    {"ep_open_cublaslt", open_cublaslt, METH_O, NULL},
    {"ep_make_product", make_product, METH_VARARGS, NULL},
    {"ep_launch_product", (PyCFunction)(void (*)(void))launch_product, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

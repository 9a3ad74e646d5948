// The functions of _native over the graphs of ep/api.h.
#include "python/graphs.h"

#include <string.h>

static const char kGraph[] = "epprof_nb.ep_graph", kRun[] = "epprof_nb.ep_graph_run";

static PyObject* text_of(const char* text) {
  return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");
}

PyObject* describe_graph(const ep_graph* graph) {
  ep_graph_info info = ep_describe_graph(graph);
  size_t count = ep_graph_node_count(graph);
  PyObject* nodes = PyTuple_New((Py_ssize_t)count);
  for (size_t i = 0; nodes && i < count; i++) {
    ep_graph_node node = ep_graph_node_at(graph, i);
    PyObject* described =
        Py_BuildValue("(LKNNiLLn)", (long long)node.id, (unsigned long long)node.op,
                      text_of(node.name), text_of(node.op_type), (int)node.node_index,
                      (long long)node.start, (long long)node.end, (Py_ssize_t)node.device_nodes);
    if (!described || PyTuple_SetItem(nodes, (Py_ssize_t)i, described) < 0) Py_CLEAR(nodes);
  }
  if (!nodes) return NULL;
  return Py_BuildValue("(LILKKNLLN)", (long long)info.id, (unsigned int)info.session,
                       (long long)info.gpu_graph_id, (unsigned long long)info.op,
                       (unsigned long long)info.parent, text_of(info.captured_in),
                       (long long)info.start,
                       (long long)info.end, nodes);
}

static PyObject* allow_capture(PyObject* Py_UNUSED(m), PyObject* allowed) {
  int yes = PyObject_IsTrue(allowed);
  if (yes < 0) return NULL;
  ep_allow_capture(yes);
  Py_RETURN_NONE;
}

static PyObject* is_replaying(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(args)) {
  return PyBool_FromLong(ep_is_replaying());
}

static PyObject* is_capturing(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyBool_FromLong(ep_is_capturing());
}

static PyObject* capture_is_intact(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyBool_FromLong(ep_capture_is_intact());
}

static PyObject* report_violation(PyObject* Py_UNUSED(m), PyObject* what) {
  const char* text = PyUnicode_AsUTF8AndSize(what, NULL);
  if (!text) return NULL;
  ep_report_violation(text);
  Py_RETURN_NONE;
}

static void release_graph(PyObject* capsule) {
  ep_release_graph(PyCapsule_GetPointer(capsule, kGraph));
}

static PyObject* begin_call(PyObject* Py_UNUSED(m), PyObject* value) {
  unsigned long session = PyLong_AsUnsignedLong(value);
  if (PyErr_Occurred()) return NULL;
  return PyLong_FromUnsignedLongLong(ep_begin_call((uint32_t)session));
}

static PyObject* begin_graph_run(PyObject* Py_UNUSED(m), PyObject* args) {
  unsigned int session;
  long long gpu_graph_id;
  PyObject* graph;
  int warm_ups;
  if (!PyArg_ParseTuple(args, "ILOi", &session, &gpu_graph_id, &graph, &warm_ups)) return NULL;
  ep_graph* replayed = NULL;
  if (graph != Py_None) {
    replayed = PyCapsule_GetPointer(graph, kGraph);
    if (!replayed) return NULL;
  }
  return PyCapsule_New(ep_begin_graph_run(session, gpu_graph_id, replayed, warm_ups), kRun, NULL);
}

static PyObject* end_graph_run(PyObject* Py_UNUSED(m), PyObject* capsule) {
  ep_graph_run* run = PyCapsule_GetPointer(capsule, kRun);
  if (!run) return NULL;
  ep_graph_result result = ep_end_graph_run(run);
  PyObject *graph = Py_None, *node = Py_None, *violation = Py_None;
  Py_INCREF(Py_None);
  Py_INCREF(Py_None);
  Py_INCREF(Py_None);
  if (result.captured) graph = PyCapsule_New(result.captured, kGraph, release_graph);
  if (result.violation) {
    node = text_of(result.node);
    violation = text_of(result.violation);
  }
  ep_release_graph_run(run);
  return Py_BuildValue("(NNNN)", graph, PyBool_FromLong(result.replayed), node, violation);
}

static PyObject* describe(PyObject* Py_UNUSED(m), PyObject* capsule) {
  ep_graph* graph = PyCapsule_GetPointer(capsule, kGraph);
  return graph ? describe_graph(graph) : NULL;
}

static PyObject* set_captured_in(PyObject* Py_UNUSED(m), PyObject* args) {
  PyObject* capsule;
  const char* line;
  if (!PyArg_ParseTuple(args, "Os", &capsule, &line)) return NULL;
  ep_graph* graph = PyCapsule_GetPointer(capsule, kGraph);
  if (!graph) return NULL;
  ep_set_captured_in(graph, line);
  Py_RETURN_NONE;
}

static void append_name(const char* name, void* list) {
  PyObject* text = text_of(name);
  if (!text || PyList_Append(list, text) < 0) PyErr_Clear();
  Py_XDECREF(text);
}

static PyObject* changed_nodes(PyObject* Py_UNUSED(m), PyObject* capsule) {
  ep_graph* graph = PyCapsule_GetPointer(capsule, kGraph);
  PyObject* names = graph ? PyList_New(0) : NULL;
  if (names) ep_changed_nodes(graph, append_name, names);
  return names;
}

static void append_replay(uint64_t op, int64_t graph, void* list) {
  PyObject* replay = Py_BuildValue("(KL)", (unsigned long long)op, (long long)graph);
  if (!replay || PyList_Append(list, replay) < 0) PyErr_Clear();
  Py_XDECREF(replay);
}

static PyObject* take_replays(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  PyObject* replays = PyList_New(0);
  if (replays) ep_take_replays(append_replay, replays);
  return replays;
}

static PyObject* unclaimed_nodes(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  size_t count = ep_unclaimed_count();
  PyObject* nodes = PyList_New((Py_ssize_t)count);
  for (size_t i = 0; nodes && i < count; i++) {
    const char *name, *op_type, *domain, *reason;
    ep_unclaimed_node(i, &name, &op_type, &domain, &reason);
    PyObject* node = Py_BuildValue("(NNNN)", text_of(name), text_of(op_type), text_of(domain),
                                   text_of(reason));
    if (!node || PyList_SetItem(nodes, (Py_ssize_t)i, node) < 0) Py_CLEAR(nodes);
  }
  return nodes;
}

static PyObject* unmatched(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  PyObject* types = PyList_New(0);
  PyObject* nodes = PyList_New(0);
  if (types && nodes) {
    ep_each_unmatched(0, append_name, types);
    ep_each_unmatched(1, append_name, nodes);
    return Py_BuildValue("(NN)", types, nodes);
  }
  Py_XDECREF(types);
  Py_XDECREF(nodes);
  return NULL;
}

static PyObject* has_control_flow(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyBool_FromLong(ep_has_control_flow());
}

PyMethodDef graph_functions[] = {
    {"ep_allow_capture", allow_capture, METH_O, NULL},
    {"ep_is_replaying", is_replaying, METH_NOARGS, NULL},
    {"ep_is_capturing", is_capturing, METH_NOARGS, NULL},
    {"ep_capture_is_intact", capture_is_intact, METH_NOARGS, NULL},
    {"ep_report_violation", report_violation, METH_O, NULL},
    {"ep_begin_call", begin_call, METH_O, NULL},
    {"ep_begin_graph_run", begin_graph_run, METH_VARARGS, NULL},
    {"ep_end_graph_run", end_graph_run, METH_O, NULL},
    {"ep_describe_graph", describe, METH_O, NULL},
    {"ep_set_captured_in", set_captured_in, METH_VARARGS, NULL},
    {"ep_changed_nodes", changed_nodes, METH_O, NULL},
    {"ep_take_replays", take_replays, METH_NOARGS, NULL},
    {"ep_unclaimed_nodes", unclaimed_nodes, METH_NOARGS, NULL},
    {"ep_unmatched", unmatched, METH_NOARGS, NULL},
    {"ep_has_control_flow", has_control_flow, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

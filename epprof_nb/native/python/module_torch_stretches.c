// The function of _native that divides the graph of a backward pass of PyTorch among module calls.
// It is in C because it visits each node of each pass.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "python/convert.h"

#include "torch/api.h"

typedef struct {
  int64_t number;
  PyObject* node;  // borrowed from the graph
} Numbered;

// The nodes found so far, in the order in which they were found, and a hash table of them.
typedef struct {
  PyObject** nodes;  // owned
  PyObject** table;  // its size is a power of two, at least twice `capacity`
  Numbered* numbered;
  size_t count, capacity, numbered_count;
} Graph;

static int grow(Graph* graph) {
  size_t capacity = graph->capacity ? 2 * graph->capacity : 1024;
  PyObject** nodes = PyMem_Realloc(graph->nodes, capacity * sizeof(PyObject*));
  if (nodes) graph->nodes = nodes;
  Numbered* numbered = nodes ? PyMem_Realloc(graph->numbered, capacity * sizeof(Numbered)) : NULL;
  if (numbered) graph->numbered = numbered;
  PyObject** table = numbered ? PyMem_Calloc(2 * capacity, sizeof(PyObject*)) : NULL;
  if (!table) {
    PyErr_NoMemory();
    return -1;
  }
  PyMem_Free(graph->table);
  graph->table = table;
  graph->capacity = capacity;
  return 0;
}

static PyObject** place_in(const Graph* graph, PyObject* node) {
  size_t mask = 2 * graph->capacity - 1;
  size_t at = ((uintptr_t)node >> 4) * 0x9E3779B97F4A7C15u >> 20 & mask;
  while (graph->table[at] && graph->table[at] != node) at = (at + 1) & mask;
  return &graph->table[at];
}

static int add_node(Graph* graph, PyObject* node) {
  if (graph->count == graph->capacity) {
    if (grow(graph) < 0) return -1;
    for (size_t i = 0; i < graph->count; i++) *place_in(graph, graph->nodes[i]) = graph->nodes[i];
  }
  PyObject** place = place_in(graph, node);
  if (*place) return 0;
  Py_INCREF(node);
  *place = graph->nodes[graph->count++] = node;
  return 0;
}

static void release(Graph* graph) {
  for (size_t i = 0; i < graph->count; i++) Py_DECREF(graph->nodes[i]);
  PyMem_Free(graph->nodes);
  PyMem_Free(graph->numbered);
  PyMem_Free(graph->table);
}

// Adds the nodes after these edges, except nodes of the type `leaf`.
static int add_edges(Graph* graph, PyObject* edges, PyObject* leaf) {
  Py_ssize_t count = PyTuple_Size(edges);
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject* edge = PyTuple_GetItem(edges, i);  // (node or None, number of its input)
    PyObject* node = edge ? PyTuple_GetItem(edge, 0) : NULL;
    if (!node) return -1;
    if (node == Py_None || (PyObject*)Py_TYPE(node) == leaf) continue;
    if (add_node(graph, node) < 0) return -1;
  }
  return count < 0 ? -1 : 0;
}

// A node without edges accumulates a gradient and has no number.
static int add_number(Graph* graph, PyObject* node, PyObject* name) {
  PyObject* value = PyObject_CallMethodObjArgs(node, name, NULL);
  if (!value) return -1;
  Numbered* added = &graph->numbered[graph->numbered_count++];
  int overflow;
  added->number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow) added->number = INT64_MAX;
  added->node = node;
  Py_DECREF(value);
  return added->number == -1 && PyErr_Occurred() ? -1 : 0;
}

static int find_nodes(Graph* graph, PyObject* roots, PyObject* leaf) {
  for (Py_ssize_t i = 0; i < PyList_Size(roots); i++) {
    if (add_node(graph, PyList_GetItem(roots, i)) < 0) return -1;
  }
  PyObject* edges_name = PyUnicode_InternFromString("next_functions");
  PyObject* number_name = PyUnicode_InternFromString("_sequence_nr");
  int failed = !edges_name || !number_name;
  for (size_t i = 0; !failed && i < graph->count; i++) {
    PyObject* node = graph->nodes[i];
    PyObject* edges = PyObject_GetAttr(node, edges_name);
    failed = !edges || add_edges(graph, edges, leaf) < 0 ||
             (PyTuple_Size(edges) && add_number(graph, node, number_name) < 0);
    Py_XDECREF(edges);
  }
  Py_XDECREF(edges_name);
  Py_XDECREF(number_name);
  return failed ? -1 : 0;
}

static int by_descending_number(const void* a, const void* b) {
  int64_t left = ((const Numbered*)a)->number, right = ((const Numbered*)b)->number;
  return (left < right) - (left > right);
}

static int append(PyObject* list, PyObject* node, uint64_t call) {
  PyObject* pair = Py_BuildValue("(OK)", node, (unsigned long long)call);
  int failed = !pair || PyList_Append(list, pair) < 0;
  Py_XDECREF(pair);
  return failed ? -1 : 0;
}

static PyObject* divide(const Graph* graph) {
  PyObject* list = PyList_New(0);
  Py_ssize_t unlinked = 0;
  uint64_t previous = 0, lowest = UINT64_MAX;
  for (size_t i = 0; list && i < graph->numbered_count; i++) {
    uint64_t number = (uint64_t)graph->numbered[i].number;
    if (number >= lowest) continue;
    // The same call created the nodes down to `lowest`.
    uint64_t call = epprof_call_of_own_node(number, &lowest);
    if (call == UINT64_MAX) {
      unlinked++;
      lowest = UINT64_MAX;
      call = 0;
    }
    if (call == previous) continue;
    previous = call;
    if (append(list, graph->numbered[i].node, call) < 0) Py_CLEAR(list);
  }
  return list ? Py_BuildValue("(Nnn)", list, (Py_ssize_t)graph->numbered_count, unlinked) : NULL;
}

static PyObject* stretches(PyObject* Py_UNUSED(m), PyObject* args) {
  PyObject *roots, *leaf, *result = NULL;
  if (!PyArg_ParseTuple(args, "O!O", &PyList_Type, &roots, &leaf)) return NULL;
  Graph graph;
  memset(&graph, 0, sizeof graph);
  if (find_nodes(&graph, roots, leaf) == 0) {
    if (graph.numbered_count) {
      qsort(graph.numbered, graph.numbered_count, sizeof(Numbered), by_descending_number);
    }
    result = divide(&graph);
  }
  release(&graph);
  return result;
}

PyMethodDef stretch_functions[] = {
    {"stretches", stretches, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

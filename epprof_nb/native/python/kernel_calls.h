// Functions for ONNX Runtime's threads to call into Python, and the calls of ep_interpreter.
#pragma once

#include "python/convert.h"

#include "ep/api.h"

// Python functions; see `ep_set_functions` in _native.pyi.
typedef struct {
  PyObject *open_session, *limit_of, *make_node, *describe_error, *record, *record_copy,
      *begin_replay, *end_replay, *release_graphs, *list_domains;
} kernel_functions;
extern kernel_functions python_functions;

// Takes the GIL; -1 if Python has ended. `PyGILState_Release` gives it back.
int enter_python(PyGILState_STATE* state);
char* python_has_ended(void);           // the error message, for the caller to free
char* take_error(PyObject* node);       // for the current exception. `node`: borrowed, or null
PyObject* describe_replay(const ep_replay_record* replay);  // None outside of a replay

// Nodes (kernel_nodes.c).
char* kernel_limit(void* handle, const ep_node* node, char** reason);
char* kernel_create(void* handle, const ep_node* node, void** kernel);
void kernel_release(void* kernel);

// Calls of kernels (kernel_calls.c).
char* kernel_compute(void* handle, ep_call* call, const ep_tensor* inputs, size_t count,
                     void* function, const ep_replay_record* replay);
void kernel_record_copy(int64_t start, int64_t end, size_t bytes, int to_device);
void kernel_end_run(void);

// Graphs (kernel_replays.c).
void* kernel_hold_function(void* handle);
void kernel_drop_function(void* function);
void kernel_hold_object(void* object);
int kernel_has_function(void* handle, void* function);
void kernel_release_graphs(uint32_t session, int gpu_graph_id);
void* kernel_enter_replay(void);
void kernel_leave_replay(void* entered);
int64_t kernel_begin_replay(const ep_graph* graph);
void kernel_end_replay(const ep_replay_record* replay, int64_t start, int64_t end);

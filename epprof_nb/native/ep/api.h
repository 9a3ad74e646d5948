// The provider of Python kernels: C functions that the Python module calls, and functions that it
// provides.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/columns.h"

#ifdef __cplusplus
extern "C" {
#endif

// A tensor. Types are ONNX's numbers (ONNXTensorElementDataType).
typedef struct {
  int present;  // 0: an omitted optional input or output
  int32_t type;
  size_t rank;
  const int64_t* dims;
  void* data;
  int on_device;  // in the memory of a CUDA device
  size_t bytes;   // of device memory
} ep_tensor;
enum { EP_INT64 = 7 };

typedef enum {
  EP_INT = 1, EP_INTS, EP_FLOAT, EP_FLOATS, EP_STRING, EP_STRINGS, EP_TENSOR = 8,
} ep_attribute_type;

typedef struct {
  const char* name;
  ep_attribute_type type;
  size_t count;  // of the union member for the type
  const int64_t* ints;
  const float* floats;
  const char* const* strings;
  ep_tensor tensor;
} ep_attribute;

// The model's information about an output. Unknown dimensions are -1.
typedef struct {
  const char* name;
  int present, has_shape;
  int32_t type;
  size_t rank;
  const int64_t* dims;
} ep_output;

typedef struct {
  const char* name;
  const ep_attribute* attributes;
  size_t attribute_count;
  const ep_output* outputs;
  size_t output_count;
  const int* has_input;  // per input, while a node is placed
  size_t input_count;
} ep_node;

typedef struct ep_session_plan ep_session_plan;  // a session being created
typedef struct ep_call ep_call;  // a Compute in progress, or a replayed one
typedef struct ep_graph ep_graph;

typedef struct {
  const char *op_type, *domain;
  int first_version, last_version;
  const size_t *host_inputs, *host_outputs;
  size_t host_input_count, host_output_count;
  int has_limits;  // `limit_of` decides which nodes it takes
  int is_view;     // the output may share the memory of the first input
} ep_declaration;

// Kernels that sessions on a device share (-1: the host device). Sessions keep their kernels alive.
typedef struct ep_kernels ep_kernels;
ep_kernels* ep_kernels_new(int device);
// `handle` identifies the kernel in `create_kernel`.
void ep_kernels_add(ep_kernels* kernels, const ep_declaration* declaration, void* handle);
// Restricts a type constraint of the kernel that was added last.
void ep_kernels_add_types(ep_kernels* kernels, const char* constraint, const int32_t* types,
                          size_t count);
// To call once all are added. Returns null or an error message for the caller to free.
char* ep_kernels_register(ep_kernels* kernels);
void ep_kernels_release(ep_kernels* kernels);

void ep_session_plan_use_kernels(ep_session_plan* plan, const ep_kernels* kernels);
void ep_session_plan_set_session(ep_session_plan* plan, uint32_t number);
void ep_session_plan_capture_graphs(ep_session_plan* plan);
void ep_session_plan_use_stream(ep_session_plan* plan, void* stream);  // of the user
// Restricts a plan to nodes of selected types, or with selected names.
void ep_session_plan_select_type(ep_session_plan* plan, const char* op_type);
void ep_session_plan_select_node(ep_session_plan* plan, const char* name);

// A recorded replay: the shared properties of its activities, and the node of the next one.
typedef struct {
  uint64_t correlation;
  int64_t stream, graph_id, graph_node_id;
} ep_replay_record;

// Makes an output. Returns null or an error message for the caller to free.
char* ep_call_output(ep_call* call, size_t index, const int64_t* dims, size_t rank,
                     ep_tensor* output);
// The CUDA device on which a Compute runs and its stream; -1 on the host device.
int ep_call_device(const ep_call* call, void** stream);

// An argument of a launch: the source of its value when the launch is repeated with other tensors.
typedef enum {
  EP_CONSTANT, EP_OF_INPUT, EP_OF_OUTPUT, EP_OF_SCRATCH, EP_OTHER_MEMORY,
} ep_argument_source;
typedef struct {
  ep_argument_source source;
  size_t index, offset;  // number of the tensor or scratch memory, and offset of the address in it
  const void* value;
  size_t bytes;
} ep_argument;
typedef struct {
  void* function;  // CUfunction
  void* owner;     // Python object that keeps it loaded; borrowed
  const char* name;
  unsigned grid[3], block[3], shared_bytes;
  const ep_argument* arguments;
  size_t argument_count;
} ep_launch;
enum { EP_MOST_ARGUMENTS = 64 };
// A launch by a library. Its arguments are addresses; null for constants.
typedef struct {
  // Returns the library's status. `workspace`: null if it needs none. Thread-safe.
  int (*launch)(void* object, void* const* addresses, void* workspace, void* stream);
  void* object;
  void* owner;       // Python object that keeps it alive; borrowed
  const char* name;  // of the library's function
  const ep_argument* arguments;
  size_t argument_count, workspace_bytes, alignment;  // of the addresses
} ep_library_launch;
// Launches a kernel on the stream of a call. Returns null or an error message for the caller to free.
char* ep_call_launch(const ep_call* call, const ep_launch* launch);
// With the GIL: notes a launch, or that the launches of the call can be repeated without Python.
void ep_call_note_launch(ep_call* call, const ep_launch* launch);
void ep_call_note_library_launch(ep_call* call, const ep_library_launch* launch);
// Notes memory whose contents only the launches of the call use; repeats get other memory.
void ep_call_note_scratch(ep_call* call, const void* data, size_t bytes);
void ep_call_repeat_launches(ep_call* call);
int ep_call_repeats(const ep_call* call);  // whether the kernel allows repeats
void ep_call_repeat_nothing(ep_call* call);  // the kernel has made other launches
// To call with the GIL, once the kernel's function has returned. Outputs that it did not make are
// marked as not present.
void ep_call_keep_launches(ep_call* call, void* function, const ep_tensor* outputs, size_t count);

int ep_call_is_replayed(const ep_call* call);
int ep_call_is_captured(const ep_call* call);  // into a graph
// Whether the end of its run is reported on this thread.
int ep_call_is_on_thread_of_run(const ep_call* call);
// Restores the stream that was current before the run of this thread, if the run has failed or
// cannot keep a stream. Its remaining nodes make their stream current themselves.
void ep_leave_stream(void);
void ep_retain(const void* data);  // keeps the memory around `data` for an array

typedef struct ep_domain ep_domain;  // of operators without a schema

// Provided by the Python module. ONNX Runtime calls them on any thread, without the GIL. Errors are
// messages for the caller to free.
typedef struct {
  // `device`: the CUDA device that ONNX Runtime has chosen; -1: the host device.
  char* (*open_session)(int device, const char* const* keys, const char* const* values,
                        size_t count, ep_session_plan* plan);
  // The domains of operators without a schema; `count` of them, of which `room` are written.
  char* (*list_domains)(ep_domain** domains, size_t room, size_t* count);
  void (*release_handle)(void* handle);
  // The reason why the kernel does not take a node, for the caller to free; null: it takes the
  // node.
  char* (*limit_of)(void* handle, const ep_node* node, char** reason);
  char* (*create_kernel)(void* handle, const ep_node* node, void** kernel);
  void (*release_kernel)(void* kernel);
  // `function`: the function to call; null for the kernel's current one. `replay`: null outside of
  // a replay.
  char* (*compute)(void* kernel, ep_call* call, const ep_tensor* inputs, size_t count,
                   void* function, const ep_replay_record* replay);
  void (*record_copy)(int64_t start, int64_t end, size_t bytes, int to_device);
  void* (*hold_function)(void* kernel);  // the kernel's current function; to be released
  void (*release_function)(void* function);  // by a caller that holds the GIL
  void (*hold_object)(void* object);         // until `release_function`; likewise
  int (*is_current)(void* kernel, void* function);
  void (*release_graphs)(uint32_t session, int gpu_graph_id);  // on request of ONNX Runtime
  int64_t (*begin_replay)(const ep_graph* graph);  // a recorded replay; returns its stream
  void (*end_replay)(const ep_replay_record* replay, int64_t start, int64_t end);  // with the GIL
  void* (*enter)(void);  // takes the GIL; null once Python has ended
  void (*leave)(void* entered);
  // The device of the stream that stays current on this thread between kernels of a run; -1: none.
  // `leave_kept_stream` takes the GIL; the device must be current.
  int (*device_of_kept_stream)(void);
  void (*leave_kept_stream)(void);
  void (*without_gil)(void (*work)(void*), void* data);  // even if the thread does not hold it
  void (*end_run)(void);  // stops the thread if its Python code has ended
} ep_interpreter;
void ep_set_interpreter(const ep_interpreter* interpreter);

// Provided by the Python module. Imports the package that calls `ep_set_interpreter`: now, or the
// main thread of Python does as soon as it runs Python code. Return null or an error message for the
// caller to free.
char* ep_connect_python(void);
char* ep_connect_python_soon(void);
// Whether the next registration with ONNX Runtime on this thread offers the host device only.
void ep_register_host_only(int host_only);

// Graphs. A session may capture them if the creating thread allows it.
void ep_allow_capture(int allowed);
int ep_is_replaying(void);  // whether the marked run of this thread has a graph to replay
int ep_is_capturing(void);  // whether the launches of this thread are being captured
int ep_capture_is_intact(void);  // capturing on a CUDA device, and nothing has ended the capture
void ep_report_violation(const char* what);

// Opens the op of a session's call, in which ONNX Runtime makes several runs; end it with
// `epprof_ort_end_run`. 0: not recorded, or already open.
uint64_t ep_begin_call(uint32_t session);
// Marks the runs of a session on this thread. They replay `graph`; null: they capture a graph after
// `warm_ups` eager runs.
typedef struct ep_graph_run ep_graph_run;
ep_graph_run* ep_begin_graph_run(uint32_t session, int64_t gpu_graph_id, ep_graph* graph,
                                 int warm_ups);
typedef struct {
  ep_graph* captured;     // for the caller to release; null: none
  int replayed;
  const char* node;       // that ended the capture or replay; null: none
  const char* violation;  // the reason
} ep_graph_result;
// Unmarks them. The texts are valid until `ep_release_graph_run`.
ep_graph_result ep_end_graph_run(ep_graph_run* run);
void ep_release_graph_run(ep_graph_run* run);
void ep_release_graph(ep_graph* graph);
// Calls `each` with the names of nodes whose kernel has a new function since the capture.
void ep_changed_nodes(const ep_graph* graph, void (*each)(const char* node, void*), void* data);

typedef struct {
  int64_t id, gpu_graph_id, start, end;
  uint32_t session;
  uint64_t op, parent;
  const char* captured_in;
} ep_graph_info;
typedef struct {
  const char *name, *op_type;
  int64_t id, start, end;
  int32_t node_index;
  uint64_t op;
  size_t device_nodes;
} ep_graph_node;
// Takes the recorded replays on CUDA devices, each with the op that was open.
void ep_take_replays(void (*each)(uint64_t op, int64_t graph, void*), void* data);
void ep_set_captured_in(ep_graph* graph, const char* line);
ep_graph_info ep_describe_graph(const ep_graph* graph);
size_t ep_graph_node_count(const ep_graph* graph);
ep_graph_node ep_graph_node_at(const ep_graph* graph, size_t index);

// Number of nodes without a kernel in the session created last on this thread.
size_t ep_unclaimed_count(void);
// `reason`: why its kernel does not take the node; empty: it has no kernel, or was not selected.
void ep_unclaimed_node(size_t index, const char** name, const char** op_type, const char** domain,
                       const char** reason);
int ep_has_control_flow(void);  // whether that session has If, Loop or Scan
// Calls `each` with selected node names or operator types that no node of that session has.
void ep_each_unmatched(int of_nodes, void (*each)(const char* name, void*), void* data);

// Domains are never released. Errors are messages for the caller to free.
char* ep_domain_new(const char* name, ep_domain** domain);
char* ep_domain_add_operator(ep_domain* domain, const char* op_type, const int32_t* inputs,
                             const int* optional, size_t input_count, const int32_t* outputs,
                             size_t output_count, void* handle);
char* ep_domain_add_to(ep_domain* domain, void* session_options);

// Opens NVIDIA's driver. Returns null or an error message for the caller to free.
char* ep_load_driver(const char* path, int* devices);

// Sets whether sessions on CUDA devices that this thread creates get streams from another provider.
void ep_leave_streams_to_others(int leave);

// Device memory, which belongs to a graph if the launches of this thread are being captured. Null
// on failure; `*failed` is then a message for the caller to free.
void* ep_device_allocate(int device, size_t bytes, char** failed);
void ep_device_free(int device, void* memory);
// Settings of the memory of a device. -1 or a null pointer leaves a setting unchanged.
void ep_device_configure(int device, const size_t* limit, int grow_exactly);

typedef struct {
  size_t in_use, most_in_use, reserved;  // bytes
  uint64_t allocations, regions;
} ep_memory_statistics;
void ep_device_statistics(int device, ep_memory_statistics* now);

// Logs the memory of all devices, at most `most` changes of each, until the stop.
void ep_memory_log_start(size_t most);
void ep_memory_log_stop(void);
// The events since the start, of device -1 on the host device; `*dropped`: the number that a limit cut.
epprof_columns* ep_memory_log_read(uint64_t* dropped);

// Takes the message of the last failed allocation for ONNX Runtime, for the caller to free; null:
// none.
char* ep_take_allocation_failure(void);
int ep_device_of(const void* data);  // the CUDA device; -1: the host device, -2: memory of others
int ep_cuda_device_at(const void* data);  // device of any allocator's memory; -1: not a CUDA device

// Products of matrices by cuBLASLt, which chooses an algorithm once for each. Matrices are stored
// by columns; the columns of a result are contiguous. Types are cuBLAS's numbers (cudaDataType_t).
enum { EP_PRODUCT_FLOAT64 = 1, EP_PRODUCT_FLOAT16 = 2, EP_PRODUCT_BFLOAT16 = 14 };
enum { EP_PRODUCT_ALIGNMENT = 16 };
typedef struct {
  int transposed;
  int64_t leading;  // elements from one column to the next
  int64_t step;     // elements from one matrix to the next; 0: all products use the same matrix
} ep_operand;
typedef struct {
  int device, type, result_type;
  int compute;  // cublasComputeType_t
  int scale;    // type of alpha and beta
  int64_t rows, columns, depth;
  int32_t batch;
  ep_operand a, b;
  double alpha, beta;  // factors of `a * b` and of a matrix C like the result; 0: none
  int has_bias;        // adds one number per row of the result
  uint64_t most_workspace;  // bytes
} ep_product_spec;
typedef struct ep_product ep_product;
char* ep_open_cublaslt(const char* path);  // null or an error message for the caller to free
// Returns null or an error message for the caller to free; `*product` is null if cuBLASLt has no
// algorithm. The device is current.
char* ep_product_new(const ep_product_spec* spec, ep_product** product);
void ep_product_free(ep_product* product);
size_t ep_product_workspace_bytes(const ep_product* product);
// Launches a product on a stream of the current device and returns cuBLAS's status. Addresses are
// multiples of EP_PRODUCT_ALIGNMENT bytes. `c` and `bias` are null if unused. Thread-safe.
int ep_product_launch(ep_product* product, const void* a, const void* b, const void* c,
                      const void* bias, void* result, void* workspace, void* stream);

// The C++ type_info of the class behind Python's SessionOptions; `name` is pybind11's name for a
// capsule of it.
const void* ep_session_options_type(const char** name);

// An entry of the config of an OrtRunOptions; null if it has none, or no session was created yet.
const char* ep_run_config_entry(const void* run_options, const char* key);

#ifdef __cplusplus
}
#endif

// The functions of ONNX Runtime that the provider of Python kernels uses, beyond the observer's.
#pragma once

#include "ort/abi.h"

namespace epprof::ep {

using namespace ort;

struct Runtime {
  Status* (*create_domain)(const char* name, CustomOpDomain**);
  Status* (*domain_add)(CustomOpDomain*, const CustomOp*);
  Status* (*add_domain)(SessionOptions*, CustomOpDomain*);
  Status* (*tensor_mutable_data)(Value*, void**);
  Status* (*tensor_data)(const Value*, const void**);
  Status* (*tensor_bytes)(const Value*, size_t*);
  Status* (*tensor_shape)(const Value*, int32_t* type, const int64_t** dims, size_t* rank);
  Status* (*default_allocator)(Allocator**);
  Status* (*allocator_free)(Allocator*, void*);
  Status* (*attribute_float)(const KernelInfo*, const char*, float*);
  Status* (*attribute_int)(const KernelInfo*, const char*, int64_t*);
  Status* (*attribute_string)(const KernelInfo*, const char*, char*, size_t*);
  Status* (*attribute_floats)(const KernelInfo*, const char*, float*, size_t*);
  Status* (*attribute_ints)(const KernelInfo*, const char*, int64_t*, size_t*);
  Status* (*attribute_strings)(const KernelInfo*, const char*, Allocator*, char***, size_t*);
  Status* (*attribute_tensor)(const KernelInfo*, const char*, Allocator*, Value**);
  Status* (*output_count)(const KernelInfo*, size_t*);
  Status* (*output_name)(const KernelInfo*, size_t, char*, size_t*);
  Status* (*output_type)(const KernelInfo*, size_t, TypeInfo**);
  Status* (*as_tensor_info)(const TypeInfo*, const TensorInfo**);
  Status* (*element_type)(const TensorInfo*, int32_t*);
  Status* (*dimension_count)(const TensorInfo*, size_t*);
  Status* (*dimensions)(const TensorInfo*, int64_t*, size_t);
  bool (*has_shape)(const TensorInfo*);
  void (*release_type_info)(TypeInfo*);
  void (*release_value)(Value*);
  void (*release_memory_info)(MemoryInfo*);
  Status* (*node_name)(const KernelInfo*, char*, size_t*);
  Status* (*context_input_count)(const KernelContext*, size_t*);
  Status* (*context_input)(const KernelContext*, size_t, const Value**);
  Status* (*context_output)(KernelContext*, size_t, const int64_t* dims, size_t rank, Value**);
  Status* (*compute_stream)(const KernelContext*, void**);
  void* (*stream_handle)(SyncStream*);
  void (*create_pairs)(KeyValuePairs**);
  void (*add_pair)(KeyValuePairs*, const char* key, const char* value);
  const char* (*pair)(const KeyValuePairs*, const char* key);
  Status* (*config_entries)(const SessionOptions*, KeyValuePairs**);
  Status* (*log_message)(const Logger*, int32_t level, const char* message, const char* file,
                         int line, const char* function);
  const char* (*run_config_entry)(const RunOptions*, const char* key);
  void (*pairs)(const KeyValuePairs*, const char* const** keys, const char* const** values,
                size_t*);
  void (*release_pairs)(KeyValuePairs*);
  Status* (*create_memory_info)(const char* name, int32_t device_type, uint32_t vendor,
                                int32_t device_id, int32_t memory_type, size_t alignment,
                                int32_t allocator_type, MemoryInfo**);
  Status* (*graph_node_count)(const Graph*, size_t*);
  Status* (*graph_nodes)(const Graph*, const Node**, size_t);
  Status* (*graph_node_id)(const Node*, size_t*);
  Status* (*graph_node_name)(const Node*, const char**);
  Status* (*graph_node_type)(const Node*, const char**);
  Status* (*graph_node_domain)(const Node*, const char**);
  Status* (*graph_node_version)(const Node*, int*);
  Status* (*graph_node_input_count)(const Node*, size_t*);
  Status* (*graph_node_inputs)(const Node*, const ValueInfo**, size_t);
  Status* (*graph_node_output_count)(const Node*, size_t*);
  Status* (*graph_node_outputs)(const Node*, const ValueInfo**, size_t);
  Status* (*value_name)(const ValueInfo*, const char**);
  Status* (*value_is_constant)(const ValueInfo*, bool*);
  Status* (*graph_node_attribute_count)(const Node*, size_t*);
  Status* (*graph_node_attributes)(const Node*, const OpAttr**, size_t);
  Status* (*attribute_type)(const OpAttr*, int32_t*);
  Status* (*attribute_name)(const OpAttr*, const char**);
  // Fails without enough room; always reports the size.
  Status* (*read_attribute)(const OpAttr*, int32_t type, void* data, size_t room, size_t* size);

  Status* (*add_single_node)(GraphSupportInfo*, const Node*);
  Status* (*look_up_kernel)(GraphSupportInfo*, const Node*, const KernelDef**);
  Status* (*kernel_ep)(const KernelInfo*, const Ep**);
  Status* (*add_allocator_info)(EpDevice*, const MemoryInfo*);
  const MemoryDevice* (*memory_device)(const MemoryInfo*);
  const MemoryDevice* (*value_memory_device)(const Value*);
  int32_t (*memory_device_type)(const MemoryDevice*);
  int32_t (*memory_device_memory_type)(const MemoryDevice*);
  uint32_t (*memory_device_id)(const MemoryDevice*);
  uint32_t (*memory_device_vendor)(const MemoryDevice*);
  Status* (*create_registry)(KernelRegistry**);
  void (*release_registry)(KernelRegistry*);
  Status* (*add_kernel)(KernelRegistry*, const KernelDef*, KernelCreateFunction, void* state);
  Status* (*create_builder)(KernelDefBuilder**);
  void (*release_builder)(KernelDefBuilder*);
  Status* (*set_operator_type)(KernelDefBuilder*, const char*);
  Status* (*set_domain)(KernelDefBuilder*, const char*);
  Status* (*set_since_version)(KernelDefBuilder*, int first, int last);
  Status* (*set_provider)(KernelDefBuilder*, const char*);
  Status* (*set_input_memory)(KernelDefBuilder*, size_t, int32_t);
  Status* (*set_output_memory)(KernelDefBuilder*, size_t, int32_t);
  Status* (*add_aliases)(KernelDefBuilder*, const int* inputs, const int* outputs, size_t count);
  Status* (*add_type_constraint)(KernelDefBuilder*, const char*, const DataType* const*, size_t);
  Status* (*build)(KernelDefBuilder*, KernelDef**);
  void (*release_def)(KernelDef*);
  Status* (*tensor_data_type)(int32_t element_type, const DataType**);
  Status* (*create_if)(const KernelInfo*, KernelImpl**);
  Status* (*create_loop)(const KernelInfo*, LoopKernelHelper*, KernelImpl**);
  Status* (*create_scan)(const KernelInfo*, ScanKernelHelper*, KernelImpl**);
};

extern Runtime rt;  // valid once `load_runtime` was called

// Fills `rt`. ort::load_api must have accepted this runtime.
void load_runtime(const ApiBase* base);

}  // namespace epprof::ep

#include "ep/runtime.h"

namespace epprof::ep {

Runtime rt{};

namespace {

template <typename Function>
void resolve(Function& function, const void* const* table, size_t slot) {
  function = reinterpret_cast<Function>(const_cast<void*>(table[slot]));
}

}  // namespace

void load_runtime(const ApiBase* base) {
  const void* const* t = base->get_api(kApiVersion);
  const void* const* (*ep_api)();
  resolve(ep_api, t, kGetEpApi);
  const void* const* e = ep_api();
  resolve(rt.create_domain, t, kCreateCustomOpDomain);
  resolve(rt.domain_add, t, kCustomOpDomain_Add);
  resolve(rt.add_domain, t, kAddCustomOpDomain);
  resolve(rt.tensor_mutable_data, t, kGetTensorMutableData);
  resolve(rt.tensor_data, t, kGetTensorData);
  resolve(rt.tensor_bytes, t, kGetTensorSizeInBytes);
  resolve(rt.tensor_shape, t, kGetTensorElementTypeAndShapeDataReference);
  resolve(rt.default_allocator, t, kGetAllocatorWithDefaultOptions);
  resolve(rt.allocator_free, t, kAllocatorFree);
  resolve(rt.attribute_float, t, kKernelInfoGetAttribute_float);
  resolve(rt.attribute_int, t, kKernelInfoGetAttribute_int64);
  resolve(rt.attribute_string, t, kKernelInfoGetAttribute_string);
  resolve(rt.attribute_floats, t, kKernelInfoGetAttributeArray_float);
  resolve(rt.attribute_ints, t, kKernelInfoGetAttributeArray_int64);
  resolve(rt.attribute_strings, t, kKernelInfoGetAttributeArray_string);
  resolve(rt.attribute_tensor, t, kKernelInfoGetAttribute_tensor);
  resolve(rt.output_count, t, kKernelInfo_GetOutputCount);
  resolve(rt.output_name, t, kKernelInfo_GetOutputName);
  resolve(rt.output_type, t, kKernelInfo_GetOutputTypeInfo);
  resolve(rt.as_tensor_info, t, kCastTypeInfoToTensorInfo);
  resolve(rt.element_type, t, kGetTensorElementType);
  resolve(rt.dimension_count, t, kGetDimensionsCount);
  resolve(rt.dimensions, t, kGetDimensions);
  resolve(rt.has_shape, t, kTensorTypeAndShape_HasShape);
  resolve(rt.release_type_info, t, kReleaseTypeInfo);
  resolve(rt.release_value, t, kReleaseValue);
  resolve(rt.release_memory_info, t, kReleaseMemoryInfo);
  resolve(rt.node_name, t, kKernelInfo_GetNodeName);
  resolve(rt.context_input_count, t, kKernelContext_GetInputCount);
  resolve(rt.context_input, t, kKernelContext_GetInput);
  resolve(rt.context_output, t, kKernelContext_GetOutput);
  resolve(rt.compute_stream, t, kKernelContext_GetGPUComputeStream);
  resolve(rt.stream_handle, t, kSyncStream_GetHandle);
  resolve(rt.create_pairs, t, kCreateKeyValuePairs);
  resolve(rt.add_pair, t, kAddKeyValuePair);
  resolve(rt.pair, t, kGetKeyValue);
  resolve(rt.config_entries, t, kGetSessionOptionsConfigEntries);
  resolve(rt.log_message, t, kLogger_LogMessage);
  resolve(rt.run_config_entry, t, kGetRunConfigEntry);
  resolve(rt.pairs, t, kGetKeyValuePairs);
  resolve(rt.release_pairs, t, kReleaseKeyValuePairs);
  resolve(rt.create_memory_info, t, kCreateMemoryInfo_V2);
  resolve(rt.graph_node_count, t, kGraph_GetNumNodes);
  resolve(rt.graph_nodes, t, kGraph_GetNodes);
  resolve(rt.graph_node_id, t, kNode_GetId);
  resolve(rt.graph_node_name, t, kNode_GetName);
  resolve(rt.graph_node_type, t, kNode_GetOperatorType);
  resolve(rt.graph_node_domain, t, kNode_GetDomain);
  resolve(rt.graph_node_version, t, kNode_GetSinceVersion);
  resolve(rt.graph_node_input_count, t, kNode_GetNumInputs);
  resolve(rt.graph_node_inputs, t, kNode_GetInputs);
  resolve(rt.graph_node_output_count, t, kNode_GetNumOutputs);
  resolve(rt.graph_node_outputs, t, kNode_GetOutputs);
  resolve(rt.value_name, t, kGetValueInfoName);
  resolve(rt.value_is_constant, t, kValueInfo_IsConstantInitializer);
  resolve(rt.graph_node_attribute_count, t, kNode_GetNumAttributes);
  resolve(rt.graph_node_attributes, t, kNode_GetAttributes);
  resolve(rt.attribute_type, t, kOpAttr_GetType);
  resolve(rt.attribute_name, t, kOpAttr_GetName);
  resolve(rt.read_attribute, t, kReadOpAttr);
  resolve(rt.add_single_node, e, kEpGraphSupportInfo_AddSingleNode);
  resolve(rt.look_up_kernel, e, kEpGraphSupportInfo_LookUpKernel);
  resolve(rt.kernel_ep, e, kKernelInfo_GetEp);
  resolve(rt.add_allocator_info, e, kEpDevice_AddAllocatorInfo);
  resolve(rt.memory_device, e, kMemoryInfo_GetMemoryDevice);
  resolve(rt.value_memory_device, e, kValue_GetMemoryDevice);
  resolve(rt.memory_device_memory_type, e, kMemoryDevice_GetMemoryType);
  resolve(rt.memory_device_id, e, kMemoryDevice_GetDeviceId);
  resolve(rt.memory_device_type, e, kMemoryDevice_GetDeviceType);
  resolve(rt.memory_device_vendor, e, kMemoryDevice_GetVendorId);
  resolve(rt.create_registry, e, kCreateKernelRegistry);
  resolve(rt.release_registry, e, kReleaseKernelRegistry);
  resolve(rt.add_kernel, e, kKernelRegistry_AddKernel);
  resolve(rt.create_builder, e, kCreateKernelDefBuilder);
  resolve(rt.release_builder, e, kReleaseKernelDefBuilder);
  resolve(rt.set_operator_type, e, kKernelDefBuilder_SetOperatorType);
  resolve(rt.set_domain, e, kKernelDefBuilder_SetDomain);
  resolve(rt.set_since_version, e, kKernelDefBuilder_SetSinceVersion);
  resolve(rt.set_provider, e, kKernelDefBuilder_SetExecutionProvider);
  resolve(rt.set_input_memory, e, kKernelDefBuilder_SetInputMemType);
  resolve(rt.set_output_memory, e, kKernelDefBuilder_SetOutputMemType);
  resolve(rt.add_type_constraint, e, kKernelDefBuilder_AddTypeConstraint);
  resolve(rt.add_aliases, e, kKernelDefBuilder_AddInputOutputAliases);
  resolve(rt.build, e, kKernelDefBuilder_Build);
  resolve(rt.release_def, e, kReleaseKernelDef);
  resolve(rt.tensor_data_type, e, kGetTensorDataType);
  resolve(rt.create_if, e, kCreateIfKernel);
  resolve(rt.create_loop, e, kCreateLoopKernel);
  resolve(rt.create_scan, e, kCreateScanKernel);
}

}  // namespace epprof::ep

// The factory of the provider of Python kernels.
#pragma once

#include <string_view>

#include "ep/api.h"
#include "ort/abi.h"

namespace epprof::ep {

// ONNX Runtime compares the provider option device_id with this entry of a device's metadata.
// Without the option, it takes the first registered device, which is the host device.
constexpr const char* kDeviceIdKey = "cuda_device_id";

ort::EpFactory* host_factory();
ort::EpFactory* cuda_factory();  // of the devices of the opened driver

ort::CustomOpDomain* domain_of(const ep_domain*);

// The operators of domains without a schema, for both factories.
ort::Status* count_domains(ort::EpFactory*, size_t* count);
ort::Status* list_domains(ort::EpFactory*, ort::CustomOpDomain** domains, size_t room);

// Fills in the factories of a registration and returns their number. Throws.
size_t provider_factories(std::string_view registered_name, ort::EpFactory** factories,
                          size_t room);

// Creates the provider of a session on a device (-1: the host device). `chosen` is the metadata of
// the devices that ONNX Runtime has for the session.
ort::Status* create_provider(int device, const ort::KeyValuePairs* const* chosen, size_t count,
                             const ort::SessionOptions*, const ort::Logger*, ort::Ep**);

}  // namespace epprof::ep

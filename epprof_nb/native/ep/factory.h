// The factory of the provider of Python kernels.
#pragma once

#include "ort/abi.h"

namespace epprof::ep {

// ONNX Runtime compares the provider option device_id with this entry of a device's metadata.
// Without the option, it takes the first registered device, which is the host device.
constexpr const char* kDeviceIdKey = "cuda_device_id";

ort::EpFactory* provider_factory();  // of the host device
ort::EpFactory* cuda_factory();      // of the devices of the opened driver

// Creates the provider of a session on a device (-1: the host device).
ort::Status* create_provider(int device, const ort::SessionOptions*, ort::Ep**);

}  // namespace epprof::ep

// The factory of the provider of Python kernels.
#pragma once

#include "ort/abi.h"

namespace epprof::ep {

ort::EpFactory* provider_factory();

}  // namespace epprof::ep

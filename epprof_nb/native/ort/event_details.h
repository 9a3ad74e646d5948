// What ONNX Runtime says of its events, as small numbers: each different one is kept once.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace epprof::ort {

// Names are ids of `epprof::intern`.
struct Details {
  uint32_t session;
  int32_t node_index;  // -1: none
  uint32_t op_type, provider, input_shapes, output_shapes;
};
static_assert(sizeof(Details) == 24, "hashed as bytes");

// The name's id. After a thread's first sight of a name this takes no lock and allocates nothing.
uint32_t cached_name(std::string_view name);

// The id of these details, from 1; with the same promise.
uint32_t cached_details(const Details& details);

std::vector<Details> details_from(uint32_t first);  // ids `first` and up

}  // namespace epprof::ort

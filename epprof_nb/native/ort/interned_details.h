// Interns the details of ONNX Runtime's events: equal details share one id.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace epprof::ort {

// Strings are ids of the string table. Missing numbers are -1.
struct EventDetails {
  uint32_t session = 0;
  int32_t node_index = -1;
  uint32_t op_type = 0, provider = 0, input_shapes = 0, output_shapes = 0;
  int64_t output_bytes = -1, parameter_bytes = -1, activation_bytes = -1;
};
static_assert(sizeof(EventDetails) == 48, "hashed as bytes");

// The string table's id of a text. For texts that the thread has seen, it takes no lock and
// allocates nothing.
uint32_t intern_event_text(std::string_view name);

// The id of these details, from 1. As fast as `intern_event_text`.
uint32_t intern_event_details(const EventDetails& details);

std::vector<EventDetails> event_details_from(uint32_t first);  // ids `first` and up

}  // namespace epprof::ort

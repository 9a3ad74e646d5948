// The functions of the ONNX Runtime that loaded the observer, resolved from its tables and checked.
#pragma once

#include <string>

#include "ort/abi.h"

namespace epprof::ort {

struct Api {
  Status* (*create_status)(int32_t code, const char* message);
  const char* (*error_message)(const Status*);
  void (*release_status)(Status*);
  int32_t (*device_type)(const HardwareDevice*);
  const KeyValuePairs* (*device_metadata)(const HardwareDevice*);
  Status* (*enable_run_profiling)(RunOptions*, const char* file_prefix);
  Status* (*disable_run_profiling)(RunOptions*);
  Status* (*create_ep_device)(EpFactory*, const HardwareDevice*, const KeyValuePairs* metadata,
                              const KeyValuePairs* options, EpDevice**);
  Status* (*create_event)(int32_t category, int32_t process_id, int32_t thread_id,
                          const char* name, int64_t timestamp_us, int64_t duration_us,
                          const char* const* keys, const char* const* values, size_t args,
                          ProfilingEvent**);
  void (*release_event)(ProfilingEvent*);
  Status* (*event_category)(const ProfilingEvent*, int32_t*);
  Status* (*event_name)(const ProfilingEvent*, const char**);
  Status* (*event_timestamp)(const ProfilingEvent*, int64_t*);
  Status* (*event_duration)(const ProfilingEvent*, int64_t*);
  Status* (*event_arg)(const ProfilingEvent*, const char* key, const char**);
  Status* (*add_events)(EventsContainer*, const ProfilingEvent* const*, size_t);
  Status* (*create_memory_info)(const char* name, int32_t device_type, uint32_t vendor,
                                int32_t device_id, int32_t memory_type, size_t alignment,
                                int32_t allocator_type, MemoryInfo**);
  void (*release_memory_info)(MemoryInfo*);
  Status* (*create_allocator)(const Session*, const MemoryInfo*, Allocator**);
  void (*release_allocator)(Allocator*);
  Status* (*allocator_statistics)(const Allocator*, KeyValuePairs**);
  void (*pairs)(const KeyValuePairs*, const char* const** keys, const char* const** values,
                size_t*);
  void (*release_pairs)(KeyValuePairs*);
};

extern Api api;                      // valid once `load_api` has succeeded
extern std::string runtime_version;  // empty before that
uint32_t runtime_api();  // the newest C API of this runtime: 31 for release 1.31

// Fills `api` from the tables of the runtime. Returns null on success, otherwise an error status.
// `*refused` is set on failure; the status may then be null, if the runtime cannot create one.
Status* load_api(const ApiBase* base, bool* refused);

// Releases a status and returns its message. Empty if the status is null, which means success.
std::string consume_status(Status* status);
Status* fail(const char* message);

}  // namespace epprof::ort

// The C functions over the observer.
#include "ort/api.h"

#include <string.h>

#include <string>
#include <typeinfo>

#include "ort/allocator_statistics.h"
#include "ort/device_events.h"
#include "ort/interned_details.h"
#include "ort/node_events.h"
#include "ort/observer_ep.h"
#include "ort/run_observer.h"
#include "ort/runtime.h"

// pybind11 finds a Python object's class by the name of this type.
struct OrtRunOptions {};

using namespace epprof::ort;

namespace {

char* message_of(Status* status) {
  std::string message = consume_status(status);
  return message.empty() ? nullptr : strdup(message.c_str());
}

}  // namespace

extern "C" {

const char* epprof_ort_runtime(void) { return runtime_version.c_str(); }

uint32_t epprof_ort_new_session(void) { return new_session(); }

void epprof_ort_begin_session(void) { begin_session(); }

uint32_t epprof_ort_end_session(void) { return end_session(); }

char* epprof_ort_profile_run(void* run_options, const char* file_prefix) {
  if (runtime_version.empty()) return strdup(
      "ONNX Runtime has not loaded the observer. Call epprof_nb.onnxruntime.install() and create "
      "the session again.");
  auto* options = static_cast<RunOptions*>(run_options);
  return message_of(file_prefix ? api.enable_run_profiling(options, file_prefix)
                                : api.disable_run_profiling(options));
}

void epprof_ort_add_device_event(uint32_t session, uint64_t run_op, int is_call, const char* name,
                                 int64_t start, int64_t duration, int32_t thread,
                                 const char* const* args, size_t count) {
  DeviceEvent event{is_call ? kApiEvent : kKernelEvent, name, start, duration, thread, {}};
  for (size_t i = 0; i + 1 < count; i += 2) event.args.emplace_back(args[i], args[i + 1]);
  add_device_event({session, run_op}, std::move(event));
}

void epprof_ort_on_run_file(epprof_ort_file_opened opened, epprof_ort_file_ending ending) {
  on_run_file(opened, ending);
}

void epprof_ort_on_node_end(epprof_ort_node_ended ended, const char* const* names, size_t count) {
  on_node_end(ended, std::set<std::string, std::less<>>(names, names + count));
}

void epprof_ort_expect_run_file(int expected) { expect_run_file(expected != 0); }

int32_t epprof_ort_nodes_of_last_run(void) { return take_nodes_of_last_run(); }

uint64_t epprof_ort_begin_run(uint32_t session) { return begin_run(session); }

void epprof_ort_end_run(uint64_t op_id) { end_run(op_id); }

void epprof_ort_end_refused_run(uint32_t session, int64_t since_ns) {
  end_refused_run(session, since_ns);
}

void epprof_ort_observe_run(uint32_t session) { observe_run(session); }

void epprof_ort_take_run(uint64_t out[6]) {
  ObservedRun run = take_run();
  out[0] = run.op;
  out[1] = run.launches;
  out[2] = run.launch_hash;
  out[3] = run.function_hash;
  out[4] = run.is_profiled;
  out[5] = run.has_subgraphs;
}

const void* epprof_ort_run_options_type(const char** name) {
  *name = typeid(std::type_info).name();
  return &typeid(OrtRunOptions);
}

char* epprof_ort_allocator_statistics(const void* session, const char* memory, int32_t device_type,
                                      uint32_t vendor, int32_t device, int* failed) {
  *failed = 0;
  try {
    auto* of = static_cast<const Session*>(session);
    return strdup(allocator_statistics(of, {memory, device_type, vendor, device}).c_str());
  } catch (const std::exception& error) {
    *failed = 1;
    return strdup(error.what());
  }
}

epprof_columns* epprof_ort_event_details(uint32_t first) {
  std::vector<uint32_t> session, op_type, provider, inputs, outputs;
  std::vector<int32_t> node_index;
  std::vector<int64_t> output_bytes, parameter_bytes, activation_bytes;
  for (const EventDetails& d : event_details_from(first)) {
    session.push_back(d.session);
    node_index.push_back(d.node_index);
    op_type.push_back(d.op_type);
    provider.push_back(d.provider);
    inputs.push_back(d.input_shapes);
    outputs.push_back(d.output_shapes);
    output_bytes.push_back(d.output_bytes);
    parameter_bytes.push_back(d.parameter_bytes);
    activation_bytes.push_back(d.activation_bytes);
  }
  auto* columns = new epprof::Columns;
  columns->add("session", std::move(session));
  columns->add("node_index", std::move(node_index));
  columns->add("op_type", std::move(op_type));
  columns->add("provider", std::move(provider));
  columns->add("input_shapes", std::move(inputs));
  columns->add("output_shapes", std::move(outputs));
  columns->add("output_bytes", std::move(output_bytes));
  columns->add("parameter_bytes", std::move(parameter_bytes));
  columns->add("activation_bytes", std::move(activation_bytes));
  return columns;
}

}  // extern "C"

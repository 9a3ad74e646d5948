#include "ep/kernel_set.h"

#include <string.h>

#include "ep/api.h"
#include "ep/interpreter.h"
#include "ep/native_kernels.h"
#include "ort/status.h"

namespace epprof::ep {
namespace {

std::string key_of(std::string_view domain, std::string_view op_type) {
  std::string key(domain);
  key += ':';
  return key += op_type;
}

}  // namespace

KernelSet::~KernelSet() {
  if (registry_) rt.release_registry(registry_);
  for (auto& kernel : kernels_) interpreter.release_handle(kernel->handle);
}

void KernelSet::add(const Declaration& declaration, bool has_limits, void* handle) {
  auto kernel = std::make_unique<PythonKernel>();
  kernel->declaration = declaration;
  kernel->handle = handle;
  kernel->device = device;
  kernel->has_limits = has_limits;
  kernel->of_provider = true;
  by_operator_[key_of(declaration.domain, declaration.op_type)].push_back(kernel.get());
  kernels_.push_back(std::move(kernel));
}

void KernelSet::add_types(const char* constraint, const int32_t* types, size_t count) {
  kernels_.back()->declaration.types.emplace_back(constraint,
                                                  std::vector<int32_t>(types, types + count));
}

const std::vector<PythonKernel*>& KernelSet::of(std::string_view domain,
                                                std::string_view op_type) const {
  static const std::vector<PythonKernel*> none;
  auto found = by_operator_.find(key_of(domain, op_type));
  return found == by_operator_.end() ? none : found->second;
}

const PythonKernel* KernelSet::find(std::string_view domain, std::string_view op_type,
                                    int version) const {
  for (const PythonKernel* kernel : of(domain, op_type)) {
    const Declaration& declaration = kernel->declaration;
    if (version >= declaration.first_version && version <= declaration.last_version) return kernel;
  }
  return nullptr;
}

void KernelSet::build_registry() {
  KernelRegistry* made = nullptr;
  check(rt.create_registry(&made));
  std::unique_ptr<KernelRegistry, void (*)(KernelRegistry*)> owner(made, rt.release_registry);
  if (device < 0) {
    add_copy_kernels(made);
  } else {
    add_cuda_copy_kernels(made, device);
  }
  add_control_flow_kernels(made, device);
  for (auto& kernel : kernels_) {
    add_kernel(made, kernel->declaration, create_python_kernel, kernel.get());
  }
  registry_ = owner.release();
}

}  // namespace epprof::ep

using namespace epprof::ep;

extern "C" {

ep_kernels* ep_kernels_new(int device) {
  return new ep_kernels{std::make_shared<KernelSet>(device)};
}

void ep_kernels_add(ep_kernels* kernels, const ep_declaration* given, void* handle) {
  Declaration declaration;
  declaration.op_type = given->op_type;
  declaration.domain = given->domain;
  declaration.first_version = given->first_version;
  declaration.last_version = given->last_version;
  declaration.host_inputs.assign(given->host_inputs, given->host_inputs + given->host_input_count);
  declaration.host_outputs.assign(given->host_outputs,
                                  given->host_outputs + given->host_output_count);
  declaration.is_view = given->is_view != 0;
  kernels->set->add(declaration, given->has_limits != 0, handle);
}

void ep_kernels_add_types(ep_kernels* kernels, const char* constraint, const int32_t* types,
                          size_t count) {
  kernels->set->add_types(constraint, types, count);
}

char* ep_kernels_register(ep_kernels* kernels) {
  std::string failed = consume_status(as_status([&] { kernels->set->build_registry(); }));
  return failed.empty() ? nullptr : strdup(failed.c_str());
}

void ep_kernels_release(ep_kernels* kernels) { delete kernels; }

}  // extern "C"

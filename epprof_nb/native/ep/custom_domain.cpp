// Operators of domains without a schema in ONNX Runtime. They belong to no provider. The kernel in
// our registry runs the nodes that the provider claims, and the operator itself runs the nodes left
// to the CPU.
#include <limits.h>
#include <string.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "ep/api.h"
#include "ep/factory.h"
#include "ep/interpreter.h"
#include "ep/python_kernel.h"
#include "ort/status.h"

namespace epprof::ep {
namespace {

constexpr int32_t kRequired = 0, kOptional = 1;  // OrtCustomOpInputOutputCharacteristic

struct Operator : CustomOp {
  std::vector<int32_t> inputs, outputs;
  std::vector<bool> optional;
  PythonKernel kernel;
};

const Operator& of(const CustomOp* op) { return *static_cast<const Operator*>(op); }

const char* name(const CustomOp* op) { return of(op).kernel.declaration.op_type.c_str(); }
const char* no_provider(const CustomOp*) { return nullptr; }
int32_t input_type(const CustomOp* op, size_t index) { return of(op).inputs[index]; }
size_t input_count(const CustomOp* op) { return of(op).inputs.size(); }
int32_t output_type(const CustomOp* op, size_t index) { return of(op).outputs[index]; }
size_t output_count(const CustomOp* op) { return of(op).outputs.size(); }
int32_t input_characteristic(const CustomOp* op, size_t index) {
  return of(op).optional[index] ? kOptional : kRequired;
}
int32_t output_characteristic(const CustomOp*, size_t) { return kRequired; }
int32_t input_memory(const CustomOp*, size_t) { return 0; }
int one(const CustomOp*) { return 1; }
int last_version(const CustomOp*) { return INT_MAX; }

Status* create(const CustomOp* op, const void*, const KernelInfo* info, void** kernel) {
  KernelImpl* made = nullptr;
  auto* python_kernel = const_cast<PythonKernel*>(&of(op).kernel);
  Status* status = create_python_kernel(python_kernel, info, &made);
  *kernel = made;
  return status;
}
Status* compute(void* kernel, KernelContext* context) {
  auto* made = static_cast<KernelImpl*>(kernel);
  return made->compute(made, context);
}
void destroy(void* kernel) {
  auto* made = static_cast<KernelImpl*>(kernel);
  made->release(made);
}
// Replaced by `create` and `compute` in every supported release.
void* create_v1(const CustomOp*, const void*, const KernelInfo*) { return nullptr; }
void compute_v1(void*, KernelContext*) {}

}  // namespace
}  // namespace epprof::ep

struct ep_domain {
  epprof::ep::CustomOpDomain* domain = nullptr;
  std::string name;
  std::deque<epprof::ep::Operator> operators;
};

namespace epprof::ep {

CustomOpDomain* domain_of(const ep_domain* domain) { return domain->domain; }

}  // namespace epprof::ep

using namespace epprof::ep;

extern "C" {

char* ep_domain_new(const char* name, ep_domain** made) {
  auto domain = std::make_unique<ep_domain>();
  domain->name = name;
  std::string failed = consume_status(rt.create_domain(domain->name.c_str(), &domain->domain));
  if (!failed.empty()) return strdup(failed.c_str());
  *made = domain.release();
  return nullptr;
}

char* ep_domain_add_operator(ep_domain* domain, const char* op_type, const int32_t* inputs,
                             const int* optional, size_t input_count_, const int32_t* outputs,
                             size_t output_count_, void* handle) {
  Operator& op = domain->operators.emplace_back();
  static_cast<CustomOp&>(op) = {
      kApiVersion, create_v1,  name,      no_provider,
      input_type,  input_count, output_type, output_count,
      compute_v1,  destroy,    input_characteristic, output_characteristic,
      input_memory, one,       one,       one,
      one,         create,     compute,   nullptr,
      one,         last_version, {}};
  op.inputs.assign(inputs, inputs + input_count_);
  op.optional.assign(optional, optional + input_count_);
  op.outputs.assign(outputs, outputs + output_count_);
  op.kernel.declaration.op_type = op_type;
  op.kernel.declaration.domain = domain->name;
  op.kernel.handle = handle;
  std::string failed = consume_status(rt.domain_add(domain->domain, &op));
  return failed.empty() ? nullptr : strdup(failed.c_str());
}

char* ep_domain_add_to(ep_domain* domain, void* session_options) {
  std::string failed =
      consume_status(rt.add_domain(static_cast<SessionOptions*>(session_options), domain->domain));
  return failed.empty() ? nullptr : strdup(failed.c_str());
}

}  // extern "C"

#include "ep/declaration.h"

#include <memory>

#include "ort/status.h"

namespace epprof::ep {

// Real numbers, also floats of 16 and 8 bits, and booleans.
const std::vector<int32_t> kNumericTypes = {1,  2,  3,  4,  5,  6,  7,  9, 10,
                                            11, 12, 13, 16, 17, 18, 19, 20};

void add_kernel(KernelRegistry* registry, const Declaration& declaration,
                KernelCreateFunction create, void* state) {
  KernelDefBuilder* made = nullptr;
  check(rt.create_builder(&made));
  std::unique_ptr<KernelDefBuilder, void (*)(KernelDefBuilder*)> builder(made, rt.release_builder);
  check(rt.set_operator_type(made, declaration.op_type.c_str()));
  check(rt.set_domain(made, declaration.domain.c_str()));
  check(rt.set_since_version(made, declaration.first_version, declaration.last_version));
  check(rt.set_provider(made, kProviderName));
  for (const auto& [name, types] : declaration.types) {
    std::vector<const DataType*> data_types(types.size());
    for (size_t i = 0; i < types.size(); i++) check(rt.tensor_data_type(types[i], &data_types[i]));
    check(rt.add_type_constraint(made, name.c_str(), data_types.data(), data_types.size()));
  }
  for (size_t i : declaration.host_inputs) check(rt.set_input_memory(made, i, kCpuInput));
  for (size_t i : declaration.host_outputs) check(rt.set_output_memory(made, i, kCpuOutput));
  if (declaration.is_view) {
    const int first = 0;
    check(rt.add_aliases(made, &first, &first, 1));
  }
  KernelDef* built = nullptr;
  check(rt.build(made, &built));
  std::unique_ptr<KernelDef, void (*)(KernelDef*)> def(built, rt.release_def);
  check(rt.add_kernel(registry, built, create, state));
}

}  // namespace epprof::ep

// Kernels and their registry. Sessions with the same kernels on the same device share them, because
// building the registry takes as long as creating a small session.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ep/python_kernel.h"

namespace epprof::ep {

class KernelSet {
 public:
  explicit KernelSet(int device) : device(device) {}
  ~KernelSet();
  KernelSet(const KernelSet&) = delete;

  void add(const Declaration&, bool has_limits, void* handle);
  void add_types(const char* constraint, const int32_t* types, size_t count);  // to the last kernel

  // The kernels of an operator, in the order in which they were added.
  const std::vector<PythonKernel*>& of(std::string_view domain, std::string_view op_type) const;
  // The kernel of an opset version; null: none.
  const PythonKernel* find(std::string_view domain, std::string_view op_type, int version) const;
  const std::vector<std::unique_ptr<PythonKernel>>& all() const { return kernels_; }
  void build_registry();  // once all kernels are added; throws
  const KernelRegistry* registry() const { return registry_; }

  const int device;  // -1: the host device

 private:
  std::vector<std::unique_ptr<PythonKernel>> kernels_;
  std::unordered_map<std::string, std::vector<PythonKernel*>> by_operator_;
  KernelRegistry* registry_ = nullptr;
};

}  // namespace epprof::ep

struct ep_kernels {
  std::shared_ptr<epprof::ep::KernelSet> set;
};

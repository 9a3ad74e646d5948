#include "ep/node_description.h"

#include <string.h>

#include <memory>

#include "ep/declaration.h"
#include "ort/status.h"

namespace epprof::ep {
namespace {

// The result of a function that returns the size if called without a buffer. Empty if it fails.
template <typename Read>
bool read_text(Read read, std::string* text) {
  size_t size = 0;
  if (Status* status = read(nullptr, &size)) {
    // Some releases report the size with an error.
    consume_status(status);
    if (!size) return false;
  }
  text->resize(size);
  if (!size) return true;
  if (!consume_status(read(text->data(), &size)).empty()) return false;
  text->resize(size - 1);  // without the terminating null
  return true;
}

// Whether the node has the attribute, which may be missing if the schema has no default.
bool read_attribute(const KernelInfo* info, const std::string& name, int32_t type,
                    NodeDescription* node) {
  ep_attribute attribute{};
  attribute.name = name.c_str();
  attribute.type = ep_attribute_type(type);
  const char* key = name.c_str();
  auto succeeded = [](Status* status) { return consume_status(status).empty(); };
  size_t size = 0;
  switch (type) {
    case kInt: {
      int64_t value = 0;
      if (!succeeded(rt.attribute_int(info, key, &value))) return false;
      attribute.ints = node->ints.emplace_back(1, value).data();
      attribute.count = 1;
      break;
    }
    case kFloat: {
      float value = 0;
      if (!succeeded(rt.attribute_float(info, key, &value))) return false;
      attribute.floats = node->floats.emplace_back(1, value).data();
      attribute.count = 1;
      break;
    }
    case kInts: {
      if (!succeeded(rt.attribute_ints(info, key, nullptr, &size))) return false;
      auto& values = node->ints.emplace_back(size);
      if (size && !succeeded(rt.attribute_ints(info, key, values.data(), &size))) return false;
      attribute.ints = values.data();
      attribute.count = size;
      break;
    }
    case kFloats: {
      if (!succeeded(rt.attribute_floats(info, key, nullptr, &size))) return false;
      auto& values = node->floats.emplace_back(size);
      if (size && !succeeded(rt.attribute_floats(info, key, values.data(), &size))) return false;
      attribute.floats = values.data();
      attribute.count = size;
      break;
    }
    case kString: {
      std::string& text = node->texts.emplace_back();
      auto read = [&](char* to, size_t* room) { return rt.attribute_string(info, key, to, room); };
      if (!read_text(read, &text)) return false;
      attribute.strings = node->lists.emplace_back(1, text.c_str()).data();
      attribute.count = 1;
      break;
    }
    case kStrings: {
      Allocator* allocator = nullptr;
      char** values = nullptr;
      check(rt.default_allocator(&allocator));
      if (!succeeded(rt.attribute_strings(info, key, allocator, &values, &size))) return false;
      auto& list = node->lists.emplace_back();
      for (size_t i = 0; i < size; i++) {
        list.push_back(node->texts.emplace_back(values[i]).c_str());
        consume_status(rt.allocator_free(allocator, values[i]));
      }
      if (values) consume_status(rt.allocator_free(allocator, values));
      attribute.strings = list.data();
      attribute.count = size;
      break;
    }
    case kTensor: {
      Allocator* allocator = nullptr;
      Value* value = nullptr;
      check(rt.default_allocator(&allocator));
      if (!succeeded(rt.attribute_tensor(info, key, allocator, &value))) return false;
      node->values.push_back(value);
      read_tensor(value, &attribute.tensor);
      attribute.count = 1;
      break;
    }
    default:
      return false;
  }
  node->attributes.push_back(attribute);
  return true;
}

void read_output(const KernelInfo* info, size_t index, NodeDescription* node) {
  ep_output output{};
  std::string& name = node->texts.emplace_back();
  read_text([&](char* to, size_t* size) { return rt.output_name(info, index, to, size); }, &name);
  // The name of a value that is copied between providers ends with our provider's name.
  static const std::string kCopied = std::string("_") + kProviderName;
  size_t end = name.size() > kCopied.size() ? name.size() - kCopied.size() : name.size();
  if (name.compare(end, std::string::npos, kCopied) == 0) name.erase(end);
  output.name = name.c_str();
  output.present = !name.empty();
  TypeInfo* type_info = nullptr;
  if (output.present && consume_status(rt.output_type(info, index, &type_info)).empty()) {
    std::unique_ptr<TypeInfo, void (*)(TypeInfo*)> owner(type_info, rt.release_type_info);
    const TensorInfo* tensor = nullptr;
    check(rt.as_tensor_info(type_info, &tensor));
    if (tensor) {
      check(rt.element_type(tensor, &output.type));
      output.has_shape = rt.has_shape(tensor);
      if (output.has_shape) {
        check(rt.dimension_count(tensor, &output.rank));
        auto& dims = node->ints.emplace_back(output.rank);
        check(rt.dimensions(tensor, dims.data(), dims.size()));
        output.dims = dims.data();
      }
    }
  }
  node->outputs.push_back(output);
}

// The bytes of an attribute; empty if it has another type.
std::string read_bytes(const OpAttr* attribute, int32_t type) {
  size_t size = 0;
  consume_status(rt.read_attribute(attribute, type, nullptr, 0, &size));  // reports the size only
  std::string bytes(size, 0);
  if (size) check(rt.read_attribute(attribute, type, bytes.data(), bytes.size(), &size));
  return bytes;
}

template <typename Number>
std::vector<Number> numbers_in(const std::string& bytes) {
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(Number));
  return numbers;
}

void read_attribute(const OpAttr* given, NodeDescription* node) {
  ep_attribute attribute{};
  const char* name = nullptr;
  int32_t type = 0;
  check(rt.attribute_name(given, &name));
  check(rt.attribute_type(given, &type));
  attribute.name = node->texts.emplace_back(name).c_str();
  attribute.type = ep_attribute_type(type);
  if (type == kInt || type == kInts) {
    auto& numbers = node->ints.emplace_back(numbers_in<int64_t>(read_bytes(given, type)));
    attribute.ints = numbers.data();
    attribute.count = numbers.size();
  } else if (type == kFloat || type == kFloats) {
    auto& numbers = node->floats.emplace_back(numbers_in<float>(read_bytes(given, type)));
    attribute.floats = numbers.data();
    attribute.count = numbers.size();
  } else if (type == kString || type == kStrings) {
    // Each text ends with a null.
    const std::string& texts = node->texts.emplace_back(read_bytes(given, type));
    auto& list = node->lists.emplace_back();
    for (size_t at = 0; at < texts.size(); at += strlen(list.back()) + 1) {
      list.push_back(texts.c_str() + at);
    }
    attribute.strings = list.data();
    attribute.count = list.size();
  } else {
    return;
  }
  bool is_single = type == kInt || type == kFloat || type == kString;
  if (is_single && attribute.count != 1) return;
  node->attributes.push_back(attribute);
}

}  // namespace

ep_node NodeDescription::view() const {
  return {name.c_str(),   attributes.data(), attributes.size(), outputs.data(),
          outputs.size(), has_input.data(),  has_input.size()};
}

void read_tensor(const Value* value, ep_tensor* tensor) {
  *tensor = {};
  if (!value) return;
  const void* data = nullptr;
  check(rt.tensor_shape(value, &tensor->type, &tensor->dims, &tensor->rank));
  check(rt.tensor_data(value, &data));
  tensor->data = const_cast<void*>(data);
  tensor->present = 1;
}

void read_node(const KernelInfo* info, const std::set<std::pair<std::string, int32_t>>& attributes,
               NodeDescription* node) {
  read_text([&](char* to, size_t* size) { return rt.node_name(info, to, size); }, &node->name);
  for (const auto& [name, type] : attributes) read_attribute(info, name, type, node);
  size_t outputs = 0;
  check(rt.output_count(info, &outputs));
  for (size_t i = 0; i < outputs; i++) read_output(info, i, node);
}

void read_node(const Node* given, NodeDescription* node) {
  const char* name = nullptr;
  check(rt.graph_node_name(given, &name));
  node->name = name;
  size_t count = 0;
  check(rt.graph_node_attribute_count(given, &count));
  std::vector<const OpAttr*> attributes(count);
  if (count) check(rt.graph_node_attributes(given, attributes.data(), count));
  for (const OpAttr* attribute : attributes) read_attribute(attribute, node);
  check(rt.graph_node_input_count(given, &count));
  std::vector<const ValueInfo*> inputs(count);
  if (count) check(rt.graph_node_inputs(given, inputs.data(), count));
  for (const ValueInfo* input : inputs) node->has_input.push_back(input != nullptr);
}

}  // namespace epprof::ep

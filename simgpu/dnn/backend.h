// Descriptors of the graph interface ("backend"): attributes by number, as they were set.
//
// A handle of the program names a descriptor. The descriptor names its content, which others may share. So an object
// built from a descriptor stays whole when the program destroys the descriptor. A finalized content never changes.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "simgpu/dnn/dnn.h"

namespace simgpu::dnn {

struct Content;
using ContentPointer = std::shared_ptr<Content>;

// One attribute. Either bytes, `count` elements of them, or other descriptors' contents.
struct Attribute {
  cudnnBackendAttributeType_t type;
  int64_t count = 0;
  std::vector<char> bytes;
  std::vector<ContentPointer> contents;
};

// A tensor in memory that an execution plan reads or writes.
struct Operand {
  int64_t unique_id;
  uint64_t bytes;
  bool written;
};

struct Content {
  explicit Content(cudnnBackendDescriptorType_t t) : type(t) {}

  const cudnnBackendDescriptorType_t type;
  bool finalized = false;
  std::map<int, Attribute> attributes;
  // Of an execution plan, set when it is finalized.
  std::vector<Operand> operands;
  uint64_t workspace_bytes = 0;

  const Attribute* Find(int name) const {
    const auto it = attributes.find(name);
    return it != attributes.end() ? &it->second : nullptr;
  }
  // Returns the first element of an attribute, or `otherwise` if it is not set (or is too small).
  template <typename T>
  T Get(int name, T otherwise) const {
    const Attribute* attribute = Find(name);
    if (attribute == nullptr || attribute->bytes.size() < sizeof(T)) return otherwise;
    __builtin_memcpy(&otherwise, attribute->bytes.data(), sizeof(T));
    return otherwise;
  }
  template <typename T>
  std::vector<T> All(int name) const {
    const Attribute* attribute = Find(name);
    if (attribute == nullptr || attribute->count <= 0) return {};
    std::vector<T> values(attribute->bytes.size() / sizeof(T));
    const char* from = attribute->bytes.data();
    for (size_t i = 0; i < values.size(); ++i) __builtin_memcpy(&values[i], from + i * sizeof(T), sizeof(T));
    return values;
  }
  // Returns the first descriptor in an attribute, if it has this type.
  const Content* Child(int name, cudnnBackendDescriptorType_t child_type) const {
    const Attribute* attribute = Find(name);
    if (attribute == nullptr || attribute->contents.empty()) return nullptr;
    const Content* child = attribute->contents.front().get();
    return child->type == child_type ? child : nullptr;
  }
  void Put(int name, int64_t value) {
    Attribute& attribute = attributes[name];
    attribute = {CUDNN_TYPE_INT64, 1, std::vector<char>(sizeof value), {}};
    __builtin_memcpy(attribute.bytes.data(), &value, sizeof value);
  }
};

// Checks and completes a descriptor. Returns the status of cudnnBackendFinalize.
cudnnStatus_t Complete(Content* content);

// Returns the bytes of a tensor's content, from its first to its last element.
uint64_t TensorBytes(const Content& tensor);

}  // namespace simgpu::dnn

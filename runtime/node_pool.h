// Memory for the nodes of maps and sets: a free list for each size, without the search that the standard's pool makes at
// each deallocation. What was once a node stays one.
#pragma once

#include <array>
#include <cstddef>
#include <memory_resource>

namespace hotpack {

// Not thread-safe. O(1); the heap is asked for slabs of nodes, each of a size as large as all before together (from 2 KiB to
// 256 KiB), and given everything back at the end.
class NodePool : public std::pmr::memory_resource {
 public:
  NodePool() = default;
  ~NodePool() override;
  NodePool(const NodePool&) = delete;
  NodePool& operator=(const NodePool&) = delete;

 private:
  static constexpr size_t kStep = 16, kMostBytes = 256;  // larger ones come from the heap, one by one
  static constexpr size_t kFirstSlab = 2048, kLargestSlab = size_t{256} << 10;
  struct Free {
    Free* next;
  };
  struct alignas(16) Slab {
    Slab* next;
  };
  struct Class {
    Free* free = nullptr;
    size_t slab_bytes = kFirstSlab;
  };

  void* do_allocate(size_t bytes, size_t alignment) override {
    if (bytes > kMostBytes || alignment > kStep) return AllocateLarge(bytes, alignment);
    Class& of_size = classes_[(bytes + kStep - 1) / kStep];
    if (of_size.free == nullptr) [[unlikely]] Refill(&of_size, (bytes + kStep - 1) / kStep * kStep);
    Free* node = of_size.free;
    of_size.free = node->next;
    return node;
  }
  void do_deallocate(void* memory, size_t bytes, size_t alignment) override {
    if (bytes > kMostBytes || alignment > kStep) return DeallocateLarge(memory, bytes, alignment);
    Class& of_size = classes_[(bytes + kStep - 1) / kStep];
    auto* node = static_cast<Free*>(memory);
    node->next = of_size.free;
    of_size.free = node;
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
  void Refill(Class* of_size, size_t node_bytes);
  static void* AllocateLarge(size_t bytes, size_t alignment);
  static void DeallocateLarge(void* memory, size_t bytes, size_t alignment);

  std::array<Class, kMostBytes / kStep + 1> classes_{};
  Slab* slabs_ = nullptr;
};

}  // namespace hotpack

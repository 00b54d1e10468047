// Nodes of maps and sets: free lists by size, filled from the heap in batches.
//
// Replaces std::pmr::unsynchronized_pool_resource for two reasons. That class loses a bad_alloc of its own bookkeeping
// and then reads invalid memory (libstdc++ 12). It also searches its chunks at every deallocation.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <new>

#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_UNPOISON_MEMORY_REGION(memory, bytes) static_cast<void>(0)
#endif

namespace hotpack {

// Not thread-safe. O(1). Returns its memory to the heap when the pool is destroyed. If the heap is exhausted,
// allocation throws bad_alloc and changes nothing.
class NodePool : public std::pmr::memory_resource {
 public:
  NodePool() = default;
  ~NodePool() override {
    while (batches_ != nullptr) {
      Link* next = batches_->next;
      ::operator delete(batches_);
      batches_ = next;
    }
  }
  NodePool(const NodePool&) = delete;
  NodePool& operator=(const NodePool&) = delete;

 private:
  struct Link {
    Link* next;
  };
  static constexpr size_t kStep = alignof(std::max_align_t);  // sizes are rounded up to it
  static constexpr size_t kClasses = 24;     // up to 384 bytes: inner nodes of B-trees (node_reserve.h)
  static constexpr size_t kMaxNodes = 1024;  // in a batch; the first batch has 16

  static bool IsNode(size_t bytes, size_t alignment) {
    return bytes - 1 < kClasses * kStep && alignment <= kStep;  // not 0
  }

  void* do_allocate(size_t bytes, size_t alignment) override {
    if (!IsNode(bytes, alignment)) return ::operator new(bytes, std::align_val_t(alignment));
    const size_t size_class = (bytes - 1) / kStep;
    if (free_[size_class] == nullptr) Refill(size_class);
    Link* node = free_[size_class];
    free_[size_class] = node->next;
    return node;
  }

  void do_deallocate(void* memory, size_t bytes, size_t alignment) override {
    if (!IsNode(bytes, alignment)) return ::operator delete(memory, bytes, std::align_val_t(alignment));
    ASAN_UNPOISON_MEMORY_REGION(memory, bytes);  // Abseil's B-trees poison the free places of their nodes
    const size_t size_class = (bytes - 1) / kStep;
    free_[size_class] = new (memory) Link{free_[size_class]};
  }

  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  void Refill(size_t size_class) {
    const size_t size = (size_class + 1) * kStep;
    const size_t count = next_count_[size_class] != 0 ? next_count_[size_class] : 16;
    auto* batch = static_cast<std::byte*>(::operator new(kStep + count * size));
    batches_ = new (batch) Link{batches_};
    for (size_t i = count; i-- > 0;) {  // the lowest is taken first
      free_[size_class] = new (batch + kStep + i * size) Link{free_[size_class]};
    }
    next_count_[size_class] = count < kMaxNodes ? 2 * count : count;
  }

  Link* free_[kClasses] = {};
  size_t next_count_[kClasses] = {};
  Link* batches_ = nullptr;
};

}  // namespace hotpack

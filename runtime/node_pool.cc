#include "runtime/node_pool.h"

#include <algorithm>
#include <new>

namespace hotpack {

NodePool::~NodePool() {
  while (slabs_ != nullptr) {
    Slab* next = slabs_->next;
    ::operator delete(slabs_);
    slabs_ = next;
  }
}

// Nodes are handed out in ascending order of their addresses at first.
void NodePool::Refill(Class* of_size, size_t node_bytes) {
  const size_t nodes = (of_size->slab_bytes - sizeof(Slab)) / node_bytes;
  auto* slab = static_cast<Slab*>(::operator new(of_size->slab_bytes));
  slab->next = slabs_;
  slabs_ = slab;
  of_size->slab_bytes = std::min(2 * of_size->slab_bytes, kLargestSlab);
  auto* first = reinterpret_cast<std::byte*>(slab + 1);
  for (size_t i = nodes; i-- > 0;) {
    auto* node = reinterpret_cast<Free*>(first + i * node_bytes);
    node->next = of_size->free;
    of_size->free = node;
  }
}

void* NodePool::AllocateLarge(size_t bytes, size_t alignment) {
  return std::pmr::new_delete_resource()->allocate(bytes, alignment);
}

void NodePool::DeallocateLarge(void* memory, size_t bytes, size_t alignment) {
  std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
}

}  // namespace hotpack

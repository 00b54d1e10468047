// Counts the host heap allocations of a request.
#pragma once

#include "runtime/engine_impl.h"
#include "runtime/heap_count.h"

namespace hotpack {

class Engine::Impl::HeapScope {
 public:
  explicit HeapScope(Impl* impl) : impl_(impl), before_(HeapAllocationsOnThisThread()) {}
  ~HeapScope() {  // the engine's lock is held
    impl_->heap_allocations_ += HeapAllocationsOnThisThread() - before_;
    if (impl_->steady_began_now_) impl_->heap_before_ = impl_->heap_allocations_;
    impl_->steady_began_now_ = false;
  }
  HeapScope(const HeapScope&) = delete;
  HeapScope& operator=(const HeapScope&) = delete;

 private:
  Impl* impl_;
  uint64_t before_;
};

}  // namespace hotpack

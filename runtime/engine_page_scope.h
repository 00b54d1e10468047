// How the engine changes pages without its lock: engine_pages.cc and engine_trim.cc.
#pragma once

#include <mutex>

#include "runtime/engine_impl.h"

namespace hotpack {

// While it lives, this thread alone changes pages. Takes growth_ without holding mutex_, and returns with both.
class Engine::Impl::PageScope {
 public:
  PageScope(Impl* impl, Lock& lock) : impl_(impl), lock_(lock) {
    lock_.unlock();
    growth_ = std::unique_lock(impl_->growth_);
    lock_.lock();
    impl_->page_work_ = true;
  }
  ~PageScope() {
    impl_->page_work_ = false;
    impl_->NoteReserved();
  }
  // Driver calls, without the lock.
  template <typename Call>
  auto Unlocked(Call call) {
    lock_.unlock();
    try {
      auto result = call();
      lock_.lock();
      return result;
    } catch (...) {  // what is destroyed on the way out needs the lock
      lock_.lock();
      throw;
    }
  }
  // The driver calls of `work`, without the lock; then the commit.
  bool Run(PageWork* work) {
    if (impl_->abandoned()) return false;  // the memory may be gone
    Unlocked([&] {
      impl_->arena_.Execute(work);
      return true;
    });
    bool ok = impl_->arena_.Finish(work);
    if (work->status == MemoryStatus::kOutOfMemory) impl_->device_gave_ = impl_->arena_.held();
    impl_->grew_ = impl_->grew_now_ = true;
    impl_->NoteReserved();
    return ok;
  }

 private:
  Impl* impl_;
  Lock& lock_;
  std::unique_lock<std::mutex> growth_;
};

}  // namespace hotpack

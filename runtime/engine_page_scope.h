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
  // The driver calls of `work`, without the lock; then the commit.
  bool Run(PageWork* work) {
    lock_.unlock();
    impl_->arena_.Execute(work);
    lock_.lock();
    bool ok = impl_->arena_.Finish(work);
    impl_->grew_ = impl_->grew_now_ = true;
    impl_->NoteReserved();
    return ok;
  }
  // Driver calls of another kind.
  template <typename Call>
  auto Unlocked(Call call) {
    lock_.unlock();
    auto result = call();
    lock_.lock();
    return result;
  }

 private:
  Impl* impl_;
  Lock& lock_;
  std::unique_lock<std::mutex> growth_;
};

}  // namespace hotpack

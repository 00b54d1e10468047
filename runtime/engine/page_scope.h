// The right to change pages: for the functions of PageManager.
#pragma once

#include <mutex>

#include "runtime/engine/page_manager.h"

namespace hotpack {

// While it lives, only this thread changes pages. The constructor takes changes_ without holding the engine's lock, and
// returns with both.
class PageManager::PageScope {
 public:
  PageScope(PageManager* pages, EngineLock& lock) : pages_(pages), lock_(lock) {
    lock_.unlock();
    changes_ = std::unique_lock(pages_->changes_);
    lock_.lock();
    pages_->page_work_ = true;
  }
  ~PageScope() {
    pages_->page_work_ = false;
    pages_->NoteReserved();
  }
  // Runs driver calls without the lock.
  template <typename Call>
  auto Unlocked(Call call) {
    lock_.unlock();
    try {
      auto result = call();
      lock_.lock();
      return result;
    } catch (...) {  // destructors on the way out need the lock
      lock_.lock();
      throw;
    }
  }
  // Makes the driver calls of `work` without the lock, then commits.
  bool Run(PageWork* work) {
    if (*pages_->abandoned_) return false;  // the memory may be gone
    Arena& arena = pages_->arena_;
    pages_->wait_.Begin(work);
    Unlocked([&] {
      arena.Execute(work);
      return true;
    });
    bool ok = arena.Finish(work);
    if (work->status == MemoryStatus::kOutOfMemory) pages_->capacity_seen_ = arena.held();
    pages_->wait_.End(*work);
    pages_->growth_ = Growth::kNow;
    pages_->NoteReserved();
    return ok;
  }

 private:
  PageManager* pages_;
  EngineLock& lock_;
  std::unique_lock<std::mutex> changes_;
};

}  // namespace hotpack

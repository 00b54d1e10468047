// Something that the process has one of, made at its first use, and never destroyed: calls come until the very end.
#pragma once

#include <atomic>
#include <new>

namespace hotpack {

// Nobody waits for anybody, other than at a static variable of a function: a thread that is at it at the moment of a
// fork does not exist in the child, where its lock would stay taken.
template <typename T>
class NoDestructor {
 public:
  constexpr NoDestructor() = default;

  // Thread-safe. Throws bad_alloc.
  T& Get() {
    T* made = made_.load(std::memory_order_acquire);
    if (made != nullptr) [[likely]]
      return *made;
    T* fresh = new T;
    if (made_.compare_exchange_strong(made, fresh)) return *fresh;
    delete fresh;
    return *made;
  }
  // Null: not made yet.
  T* Made() const { return made_.load(std::memory_order_acquire); }

  // In the child of a fork: as it was made first; a lock in it may be held by a thread that does not exist.
  void RenewAfterFork() {
    if (T* made = Made()) new (made) T;
  }

 private:
  std::atomic<T*> made_{nullptr};
};

}  // namespace hotpack

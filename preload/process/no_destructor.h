// An object that the process has once. Made at its first use and never destroyed, since calls come until the very end.
#pragma once

#include <atomic>
#include <new>

namespace hotpack {

// Lock-free, unlike a function's static variable: a thread that holds that variable's lock at a fork does not exist in
// the child, where the lock would stay taken.
template <typename T>
class NoDestructor {
 public:
  constexpr NoDestructor() = default;

  // Returns the object; makes it at the first call. Thread-safe. Throws bad_alloc.
  T& Get() {
    T* made = made_.load(std::memory_order_acquire);
    if (made != nullptr) [[likely]]
      return *made;
    T* fresh = new T;
    if (made_.compare_exchange_strong(made, fresh)) return *fresh;
    delete fresh;
    return *made;
  }
  // Returns null if it is not made yet.
  T* Made() const { return made_.load(std::memory_order_acquire); }

  // In a forked child: constructs the object again, since a lost thread may hold a lock in it.
  void RenewAfterFork() {
    if (T* made = Made()) new (made) T;
  }

 private:
  std::atomic<T*> made_{nullptr};
};

}  // namespace hotpack

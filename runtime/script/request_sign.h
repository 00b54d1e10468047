// What a request shows of itself before it is served: its size, and the releases since the request before it.
#pragma once

#include <cstdint>

namespace hotpack {

// A request's size and context. The context does not depend on sizes, so it tells layers apart where lengths change.
struct RequestSign {
  uint32_t units = 0;     // in units of 512 bytes
  uint32_t releases = 0;  // blocks released since the request before
  uint64_t context = 0;   // ReleaseContext::hash()

  bool operator==(const RequestSign&) const = default;
};

// The context of a request: the number of releases before it, and the least ages of those, ascending; UINT64_MAX: there
// are fewer.
constexpr uint64_t ContextHash(uint64_t releases, uint64_t first, uint64_t second, uint64_t third, uint64_t fourth) {
  constexpr uint64_t kPrime = 1099511628211ull;  // FNV-1a
  uint64_t hash = 14695981039346656037ull;
  for (const uint64_t value : {first, second, third, fourth, releases}) hash = (hash ^ value) * kPrime;
  return hash;
}

// Collects the releases between two requests. Their order does not count, so a history of ages gives the same. Not
// thread-safe. O(1).
class ReleaseContext {
 public:
  // A block was released. `age`: requests since its own, 1 if it was the last one.
  void Add(uint64_t age) {
    if (releases_++ == 0) {
      least_[0] = age;
      least_[1] = least_[2] = least_[3] = UINT64_MAX;
      return;
    }
    for (uint64_t& least : least_) {  // ascending
      if (age >= least) continue;
      const uint64_t next = least;
      least = age;
      age = next;
    }
  }
  uint32_t releases() const { return releases_; }
  // Of the number of releases, and of the least ages: those of large groups (all gradients at once) vary.
  uint64_t hash() const {
    constexpr uint64_t kNoReleases = ContextHash(0, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX);
    return releases_ == 0 ? kNoReleases : ContextHash(releases_, least_[0], least_[1], least_[2], least_[3]);
  }
  RequestSign Sign(uint32_t units) const { return {units, releases_, hash()}; }
  void Clear() { releases_ = 0; }

 private:
  uint64_t least_[4] = {};  // without a release they have any value
  uint32_t releases_ = 0;
};

}  // namespace hotpack

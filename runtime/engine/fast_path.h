// Which requests and releases take the short path through the engine.
#pragma once

#include <cstdint>

namespace hotpack {

// Guarded by the engine's lock. Any part may close it, which is always safe. Only the engine opens it, at the end of a
// slow request.
class FastPath {
 public:
  bool requests() const { return open_ == Open::kAll; }     // a script is followed, and nothing else is due
  bool releases() const { return open_ != Open::kClosed; }  // a script is followed, and nothing is recorded

  void Set(bool releases, bool requests) {
    open_ = !releases ? Open::kClosed : requests ? Open::kAll : Open::kReleases;
  }
  void Close() { open_ = Open::kClosed; }
  void CloseRequests() {
    if (open_ == Open::kAll) open_ = Open::kReleases;
  }

 private:
  enum class Open : uint8_t { kClosed, kReleases, kAll } open_ = Open::kClosed;
};

}  // namespace hotpack

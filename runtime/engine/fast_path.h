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

  // An envelope is followed, and nothing else is due, as far as requests of lower ordinals are concerned.
  bool envelope_requests(uint64_t ordinal) const { return ordinal < envelope_until_; }
  bool envelope_releases() const { return envelope_releases_; }  // ... and nothing is recorded

  void Set(bool releases, bool requests) {
    open_ = !releases ? Open::kClosed : requests ? Open::kAll : Open::kReleases;
  }
  // `until`: the first ordinal that does not take the short way.
  void SetEnvelope(bool releases, uint64_t until) {
    envelope_releases_ = releases;
    envelope_until_ = releases ? until : 0;
  }
  void Close() {
    open_ = Open::kClosed;
    SetEnvelope(false, 0);
  }
  void CloseRequests() {
    if (open_ == Open::kAll) open_ = Open::kReleases;
  }

 private:
  enum class Open : uint8_t { kClosed, kReleases, kAll } open_ = Open::kClosed;
  bool envelope_releases_ = false;
  uint64_t envelope_until_ = 0;
};

}  // namespace hotpack

// Texts of NVTX: domains, registered strings, messages of either kind of characters.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <mutex>
#include <string>
#include <unordered_map>

namespace hotpack::nvtx {

// Returns a wide string as UTF-8, empty for null. Invalid characters become '?'.
std::string Narrow(const wchar_t* text);
inline std::string Text(const char* text) { return text != nullptr ? text : ""; }
inline std::string Text(const wchar_t* text) { return Narrow(text); }

// Texts by handle. Thread-safe. Throws bad_alloc.
class Names {
 public:
  void Set(const void* handle, std::string text);
  void Forget(const void* handle);
  std::string Get(const void* handle);  // empty if unknown

  // Called around a fork, so that no other thread holds the lock then: it would stay taken in the child.
  void Lock() { mutex_.lock(); }
  void Unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
  std::unordered_map<const void*, std::string> texts_;
};

Names& Domains();
Names& Strings();

// Returns the name of a range or mark: the message, or "domain:message" in a named domain.
std::string Label(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes);

}  // namespace hotpack::nvtx

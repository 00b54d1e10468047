// Texts of NVTX: domains, registered strings, messages of either kind of characters.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <mutex>
#include <string>
#include <unordered_map>

namespace hotpack::nvtx {

// UTF-8 of a wide string; empty of null. What is no character is written as '?'.
std::string Narrow(const wchar_t* text);
inline std::string Text(const char* text) { return text != nullptr ? text : ""; }
inline std::string Text(const wchar_t* text) { return Narrow(text); }

// Handles → texts. Thread-safe. Throws bad_alloc.
class Names {
 public:
  void Set(const void* handle, std::string text);
  void Forget(const void* handle);
  std::string Get(const void* handle);  // empty if it is not known

  // Around a fork, so that no other thread is at it then: its lock would stay taken in the child.
  void Lock() { mutex_.lock(); }
  void Unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
  std::unordered_map<const void*, std::string> texts_;
};

Names& Domains();
Names& Strings();

// What a range or mark is called: the message; in a domain that has a name, "domain:message".
std::string Label(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes);

}  // namespace hotpack::nvtx

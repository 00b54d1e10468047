#include "preload/nvtx/names.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace hotpack::nvtx {
namespace {

void Append(uint32_t character, std::string* out) {
  if (character < 0x80) {
    out->push_back(static_cast<char>(character));
    return;
  }
  if (character > 0x10FFFF || (character >= 0xD800 && character < 0xE000)) {
    out->push_back('?');
    return;
  }
  const int more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
  constexpr unsigned char kFirst[] = {0, 0xC0, 0xE0, 0xF0};
  out->push_back(static_cast<char>(kFirst[more] | (character >> (6 * more))));
  for (int i = more - 1; i >= 0; --i) out->push_back(static_cast<char>(0x80 | ((character >> (6 * i)) & 0x3F)));
}

// A structure of an older version is shorter (nvtxEventAttributes_t::size).
bool HasMessage(const nvtxEventAttributes_t* attributes) {
  return attributes != nullptr &&
         attributes->size >= offsetof(nvtxEventAttributes_t, message) + sizeof(attributes->message);
}

std::string Message(const nvtxEventAttributes_t* attributes) {
  if (!HasMessage(attributes)) return "";
  switch (attributes->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
      return Text(attributes->message.ascii);
    case NVTX_MESSAGE_TYPE_UNICODE:
      return Narrow(attributes->message.unicode);
    case NVTX_MESSAGE_TYPE_REGISTERED:
      return Strings().Get(attributes->message.registered);
    default:
      return "";
  }
}

}  // namespace

std::string Narrow(const wchar_t* text) {
  static_assert(sizeof(wchar_t) == 4);
  std::string out;
  for (; text != nullptr && *text != 0; ++text) Append(static_cast<uint32_t>(*text), &out);
  return out;
}

void Names::Set(const void* handle, std::string text) {
  std::lock_guard<std::mutex> lock(mutex_);
  texts_[handle] = std::move(text);
}

void Names::Forget(const void* handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  texts_.erase(handle);
}

std::string Names::Get(const void* handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = texts_.find(handle);
  return found != texts_.end() ? found->second : "";
}

Names& Domains() {
  static Names* names = new Names;  // never destroyed: ranges arrive until the end
  return *names;
}

Names& Strings() {
  static Names* names = new Names;
  return *names;
}

std::string Label(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  std::string label = domain != nullptr ? Domains().Get(domain) : "";
  if (!label.empty()) label += ':';
  return label + Message(attributes);
}

}  // namespace hotpack::nvtx

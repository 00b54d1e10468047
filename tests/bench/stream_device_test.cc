// The stream of each call of a device, and the waits between streams, checked on a list of the calls.
#include "bench/train/stream_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/train/launch_stream.h"

namespace hotpack::train {
namespace {

using Calls = std::vector<std::string>;

// Streams are named S1, S2, …, events E1, E2, …; memory is the host's. Waits for the host only where the device asks.
class ListedApi : public DeviceApi {
 public:
  explicit ListedApi(Calls& calls) : calls_(calls) {}
  ~ListedApi() override {
    EXPECT_TRUE(names_.empty()) << names_.size() << " streams or events were left";
    EXPECT_EQ(pinned_, 0) << "pinned memory was left";
  }
  void* Malloc(size_t bytes) override { return Allocated("malloc", bytes); }
  void Free(void* pointer) override { Freed("free", pointer); }
  void* MallocAsync(size_t bytes, void* stream) override { return Allocated("malloc " + Name(stream), bytes); }
  void FreeAsync(void* pointer, void* stream) override { Freed("free " + Name(stream), pointer); }
  void* HotpackMalloc(size_t bytes, void* stream) override { return Allocated("hotpack " + Name(stream), bytes); }
  void HotpackFree(void* pointer, void* stream) override { Freed("hotpack free " + Name(stream), pointer); }
  void* HostAlloc(size_t bytes) override {
    ++pinned_;
    return Allocated("pin " + std::to_string(bytes), bytes);
  }
  void HostFree(void* pointer) override {
    --pinned_;
    Freed("unpin", pointer);
  }
  void* StreamCreate() override { return Named("S" + std::to_string(++streams_)); }
  void StreamDestroy(void* stream) override { Unnamed(stream); }
  void StreamSynchronize(void* stream) override { calls_.push_back("wait for " + Name(stream)); }
  void StreamWaitEvent(void* stream, void* event) override {
    calls_.push_back(Name(stream) + " waits for " + Name(event));
  }
  void* EventCreate() override { return Named("E" + std::to_string(++events_)); }
  void EventDestroy(void* event) override { Unnamed(event); }
  void EventRecord(void* event, void* stream) override { calls_.push_back(Name(event) + " on " + Name(stream)); }
  void EventSynchronize(void* event) override { calls_.push_back("wait for " + Name(event)); }
  void CopyIn(void* device, const void* host, size_t bytes) override {
    calls_.push_back("in");
    std::memcpy(device, host, bytes);
  }
  void CopyOut(void* host, const void* device, size_t bytes) override {
    calls_.push_back("out");
    std::memcpy(host, device, bytes);
  }
  void CopyInAsync(void* device, const void* host, size_t bytes, void* stream) override {
    calls_.push_back("in " + Name(stream));
    std::memcpy(device, host, bytes);
    last_source = host;
  }
  void CopyOutAsync(void* host, const void* device, size_t bytes, void* stream) override {
    calls_.push_back("out " + Name(stream));
    std::memcpy(host, device, bytes);
  }
  std::string AllocateName(bool async) const override { return async ? "async" : "plain"; }

  const void* last_source = nullptr;
  bool free_fails = false;

 private:
  void* Allocated(const std::string& call, size_t bytes) {
    calls_.push_back(call);
    return std::malloc(bytes);
  }
  void Freed(const std::string& call, void* pointer) {
    calls_.push_back(call);
    std::free(pointer);
    if (free_fails) throw std::runtime_error("free failed");
  }
  void* Named(const std::string& name) {
    names_.push_back(std::make_unique<std::string>(name));
    return names_.back().get();
  }
  void Unnamed(void* handle) {
    std::erase_if(names_, [&](const auto& name) { return name.get() == handle; });
  }
  static std::string Name(void* handle) { return handle == nullptr ? "S0" : *static_cast<std::string*>(handle); }

  Calls& calls_;
  std::vector<std::unique_ptr<std::string>> names_;
  int streams_ = 0;
  int events_ = 0;
  int pinned_ = 0;
};

struct Listed {
  explicit Listed(const DeviceOptions& options) {
    auto made = std::make_unique<ListedApi>(calls);
    api = made.get();
    device = std::make_unique<StreamDevice>(std::move(made), options);
  }
  Calls Take() { return std::exchange(calls, {}); }

  Calls calls;
  ListedApi* api;
  std::unique_ptr<StreamDevice> device;
};

TEST(StreamDeviceTest, WithOneStreamAllIsOnTheDefaultStream) {
  Listed listed({.allocator = AllocatorKind::kCuda, .streams = 1});
  float value = 3.0f, back = 0.0f;
  void* memory = listed.device->AllocateForCopy(sizeof(float));
  listed.device->StartCopyIn(memory, &value, sizeof(float));
  listed.device->WaitForCopies();
  listed.device->CopyOut(&back, memory, sizeof(float));
  listed.device->Release(memory);
  EXPECT_EQ(listed.Take(), (Calls{"malloc", "in", "out", "free"}));
  EXPECT_EQ(back, 3.0f);
  EXPECT_EQ(launch_stream, nullptr);
  listed.device.reset();
}

// S1 computes and S2 copies; E1 is what computing waits for, E2 and up guard the pinned memory.
TEST(StreamDeviceTest, CopiesAreOrderedByEvents) {
  Listed listed({.allocator = AllocatorKind::kCudaAsync, .streams = 2});
  EXPECT_NE(launch_stream, nullptr);
  const float value = 3.0f;
  void* memory = listed.device->AllocateForCopy(sizeof(float));
  listed.device->StartCopyIn(memory, &value, sizeof(float));
  EXPECT_NE(listed.api->last_source, &value) << "the caller's memory may go at once: it is pinned memory that is read";
  EXPECT_EQ(std::memcmp(memory, &value, sizeof(float)), 0);
  EXPECT_EQ(listed.Take(), (Calls{"malloc S2", "pin 4", "in S2", "E2 on S2"})) << "nothing is waited for";
  listed.device->WaitForCopies();
  EXPECT_EQ(listed.Take(), (Calls{"E1 on S2", "S1 waits for E1"}));
  listed.device->Release(memory);
  EXPECT_EQ(listed.Take(), (Calls{"free S1"}));

  memory = listed.device->Allocate(sizeof(float));
  float back = 0.0f;
  listed.device->CopyIn(memory, &value, sizeof(float));
  listed.device->CopyOut(&back, memory, sizeof(float));
  listed.device->Release(memory);
  EXPECT_EQ(listed.Take(), (Calls{"malloc S1", "in S1", "wait for S1", "out S1", "wait for S1", "free S1"}));
  listed.device.reset();
  EXPECT_EQ(launch_stream, nullptr);
}

TEST(StreamDeviceTest, PinnedMemoryIsUsedAgainOnlyOnceItWasRead) {
  Listed listed({.allocator = AllocatorKind::kHotpack, .streams = 2});
  const std::vector<float> values(4, 1.0f);
  void* memory = listed.device->AllocateForCopy(4 * sizeof(float));
  EXPECT_EQ(listed.Take(), (Calls{"hotpack S2"}));
  std::map<const void*, std::string> last_read;  // source → the event that was recorded behind the copy
  int waits = 0, pins = 0;
  for (int i = 0; i < 40; ++i) {
    listed.device->StartCopyIn(memory, values.data(), (i < 20 ? 1 : 4) * sizeof(float));
    const Calls calls = listed.Take();
    ASSERT_GE(calls.size(), 2u);
    const std::string event = calls.back().substr(0, calls.back().find(' '));
    std::string& earlier = last_read[listed.api->last_source];
    const bool pinned =
        std::any_of(calls.begin(), calls.end(), [](const auto& call) { return call.rfind("pin", 0) == 0; });
    if (!earlier.empty() && !pinned) {
      EXPECT_EQ(calls.front(), "wait for " + earlier) << "copy " << i;
      ++waits;
    }
    pins += pinned ? 1 : 0;
    earlier = event;
  }
  EXPECT_GT(waits, 10);
  EXPECT_GT(pins, 1);
  listed.device->Release(memory);
  EXPECT_EQ(listed.Take(), (Calls{"hotpack free S1"}));
}

TEST(StreamDeviceTest, AFailedReleaseIsToldByTheNextCall) {
  Listed listed({.allocator = AllocatorKind::kCuda, .streams = 1});
  void* memory = listed.device->Allocate(4);
  listed.api->free_fails = true;
  listed.device->Release(memory);
  EXPECT_THROW(listed.device->Allocate(4), std::runtime_error);
}

}  // namespace
}  // namespace hotpack::train

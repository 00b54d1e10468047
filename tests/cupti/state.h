// State that the stand-in's parts share.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>

#include "tests/cupti/standin.h"

namespace cupti_standin {

inline constexpr size_t kRecordBytes = 512;  // of every record here: larger than any of the structures

struct Buffer {
  uint8_t* data = nullptr;
  size_t bytes = 0, used = 0;
  uint64_t complete_ns = 0;  // when the last of its records is complete
};

struct State {
  std::mutex mutex;
  std::map<std::string, std::string> words;
  Figures figures;
  bool ended = false;  // by cuptiFinalize
  CUpti_CallbackFunc callback = nullptr;
  void* user = nullptr;
  CUpti_SubscriberHandle subscriber = nullptr, next_subscriber = reinterpret_cast<CUpti_SubscriberHandle>(0x1000);
  std::string owner;
  std::set<CUpti_ActivityKind> kinds;
  std::set<CUpti_CallbackId> calls;
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  Buffer buffer;
  uint32_t last_correlation = 0;
  uint64_t busy_until = 0;
  size_t dropped = 0;
  uint64_t to_drop = 0;
  bool allocated = false;
};

State& The();  // never destroyed: callbacks come until the very end

// CUPTI's clock, which is not CLOCK_MONOTONIC.
uint64_t Now();

// A word of CUPTI_STANDIN. With the lock held, or before anything else runs.
bool Has(const char* word);
uint64_t Number(const char* word, uint64_t otherwise);

// CUPTI belongs to somebody else.
bool Foreign();

// Takes the buffer out for completion, and completes it; the first with the lock held, the second without.
Buffer TakeBuffer();
void Complete(const Buffer& buffer);

}  // namespace cupti_standin

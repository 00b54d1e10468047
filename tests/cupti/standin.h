// A stand-in for libcupti: our own library under its soname, with its documented functions, for programs on the
// simulated device. It is made from NVIDIA's headers and documentation, and contains nothing of theirs.
//
// Like CUPTI it works inside the driver call: preloaded behind hotpack, it defines the driver functions that submit
// work (driver.cc) and calls the next ones. Each such call gets a correlation id, an entry callback and a record.
//
// CUPTI_STANDIN names its faults and events, words with commas in between:
//   taken=NAME    a subscriber of this name is already there
//   lose=N        after N submissions another subscriber takes over
//   end=N         after N submissions another client calls cuptiFinalize
//   drop=N        the first N records do not fit
//   late=MS       work ends so many milliseconds after its submission
//   thread        buffers are completed on another thread than the flushing one
//   deny          kernels may not be recorded here
//   version=V     the result of cuptiGetVersion
//   allocate      takes device memory for itself, as CUPTI does, by a function that it looked up
// CUPTI_STANDIN_LOG names a file that is written at the process's end: "name value" lines, those of Figures.
#pragma once

#include <cuda.h>
#include <cupti.h>

#include <cstdint>

namespace cupti_standin {

struct Figures {
  uint64_t subscribed = 0;
  uint64_t unsubscribed = 0;
  uint64_t kinds_on = 0;       // of activities, now
  uint64_t calls_watched = 0;  // driver functions with a callback, now
  uint64_t buffers_out = 0;    // asked for and not completed, now
  uint64_t submissions = 0;    // driver calls that submit work
  uint64_t callbacks = 0;      // made
  uint64_t records = 0;        // of work and memory, written
  uint64_t delivered = 0;      // ... and completed
  uint64_t flushes = 0;
  uint64_t forced_flushes = 0;
  uint64_t disturbed = 0;  // calls that changed something while CUPTI belonged to somebody else
  uint64_t finalized = 0;  // calls of cuptiFinalize
};

enum class Work : uint8_t { kKernel, kCopy, kSet, kGraph };

// A driver call that submits work. `captured`: it has no record. Thread-safe, like all here.
class Submission {
 public:
  Submission(CUpti_CallbackId call, const char* function, const void* parameters, Work work, const char* name,
             bool captured);
  ~Submission();  // the call returns
  Submission(const Submission&) = delete;
  Submission& operator=(const Submission&) = delete;

 private:
  void Record();
  Work work_;
  const char* name_;
  bool captured_;
  uint32_t correlation_;
};

// The driver gave memory or took it back.
void NoteMemory(CUdeviceptr address, uint64_t bytes, bool released);

// Forgets everything and configures it again by words as above. For tests that have it in their own process.
extern "C" __attribute__((visibility("default"))) void cupti_standin_reset(const char* words);
extern "C" __attribute__((visibility("default"))) Figures cupti_standin_figures();
// As if the program called cuLaunchKernel for a kernel of this name.
extern "C" __attribute__((visibility("default"))) void cupti_standin_launch(const char* name, CUstream stream);

}  // namespace cupti_standin

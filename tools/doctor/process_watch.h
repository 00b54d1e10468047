// Looks, from outside, for processes of a run that the preload did not reach.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tools/doctor/doctor_facts.h"

namespace hotpack {

// While one exists, the descendants of this process are looked at ten times a second: which have the driver library
// loaded, and no libhotpack_preload. What begins and ends between two looks is not seen.
class ProcessWatch {
 public:
  ProcessWatch();
  ~ProcessWatch();
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  std::vector<MissedProcess> Stop();

 private:
  void Look();

  std::map<int, std::string> missed_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace hotpack

// Watches, from outside, for processes of a run that the preload did not reach.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tools/doctor/doctor_facts.h"

namespace hotpack {

// While one exists, it checks the descendants of this process ten times a second for the driver library without
// libhotpack_preload. Processes that begin and end between two checks are missed.
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

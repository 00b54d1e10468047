#include "tools/cli/run_all.h"

#include <algorithm>
#include <atomic>
#include <thread>

namespace hotpack {

void RunAll(const std::vector<std::function<void()>>& tasks) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < tasks.size(); i = next++) tasks[i]();
  };
  const size_t threads = std::min<size_t>(std::max(1u, std::thread::hardware_concurrency()), tasks.size());
  std::vector<std::thread> others;
  for (size_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
}

}  // namespace hotpack

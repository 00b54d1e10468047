// Tasks at the same time.
#pragma once

#include <functional>
#include <vector>

namespace hotpack {

// Runs all tasks, on as many threads as there are cores, and waits for them. The first ones begin first. Tasks must not
// throw. Thread-safe.
void RunAll(const std::vector<std::function<void()>>& tasks);

}  // namespace hotpack

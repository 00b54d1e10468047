// SIMGPU_DELAY: calls that take their time, so that other threads come between.
#pragma once

namespace simgpu {

// Reads the setting. A malformed one is said in a line, and the process ends with status 2. Once, before any thread.
void ReadDelay();
// Waits now and then, as the setting says. Thread-safe; without the setting it is a load and a branch.
void Delay();

}  // namespace simgpu

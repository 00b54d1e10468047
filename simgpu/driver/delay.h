// SIMGPU_DELAY: delays calls, so that other threads come in between.
#pragma once

namespace simgpu {

// Reads the setting. A malformed one is reported in a line and ends the process with status 2. Call once, before any
// thread.
void ReadDelay();
// Waits from time to time, as the setting tells. Thread-safe. Without the setting: a load and a branch.
void Delay();

}  // namespace simgpu

// Calls of the library to its collectors (collector_host.h).
#pragma once

namespace hotpack {

// Makes collectors hand over what they still have, at the end of the process. Call before the recordings close. Later
// calls do nothing.
void EndCollectors();

// In a forked child.
void ForgetCollectorsAfterFork();

}  // namespace hotpack

// What the library does around its collectors (collector_host.h).
#pragma once

namespace hotpack {

// The process ends: collectors hand over what they still have. Before the recordings close. Once; later calls do
// nothing.
void EndCollectors();

// In the child of a fork.
void ForgetCollectorsAfterFork();

}  // namespace hotpack

// Detects tools that check device memory by the driver's allocations. Blocks inside an arena would be invisible to
// them, so hotpack leaves everything to the driver while one is present.
#pragma once

namespace hotpack {

// Returns the name of a memory checker that is, or is about to be, in this process; null if there is none.
// Async-signal-unsafe, no heap, no driver call.
const char* DetectInProcess();

// Also detects cuda-gdb, once the driver library is loaded (`driver`: its dlopen handle). A variable in the driver
// tells whether a debugger is attached. One that attaches later finds the arena as it is.
const char* DetectAtDriver(void* driver);

}  // namespace hotpack

// Tools that look at device memory by the driver's allocations: blocks that are parts of an arena would blind them, so
// everything is left to the driver while one is there.
#pragma once

namespace hotpack {

// Name of a memory checker that is, or is about to be, in this process; null: none. Async-signal-unsafe, no heap, no
// driver call.
const char* DetectInProcess();

// The same, and cuda-gdb, once the driver library is loaded (`driver`: its dlopen handle). A variable in the driver
// says whether a debugger is attached; a debugger that attaches later finds the arena as it is.
const char* DetectAtDriver(void* driver);

}  // namespace hotpack

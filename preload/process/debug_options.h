// What HOTPACK_OVERCOMMIT comes to. The parse functions of it and of HOTPACK_DEBUG (option_table.h) are here as well.
#pragma once

#include "preload/process/options.h"

namespace hotpack {

// Bytes of managed memory that an arena on a device of `device_bytes` may use: what the option says, else twice the
// device's memory, but no more than half of the host's, where it lies in the end. 0 if the option is off.
uint64_t ManagedLimit(const Options& options, uint64_t device_bytes);

}  // namespace hotpack

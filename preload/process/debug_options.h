// The bytes that HOTPACK_OVERCOMMIT allows. Its parse function and HOTPACK_DEBUG's (option_table.h) are here too.
#pragma once

#include "preload/process/options.h"

namespace hotpack {

// Returns the bytes of managed memory that an arena on a device of `device_bytes` may use: the option's value, else
// twice the device's memory. At most half of the host's memory, which backs it in the end. 0 if the option is off.
uint64_t ManagedLimit(const Options& options, uint64_t device_bytes);

}  // namespace hotpack

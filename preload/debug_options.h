// The values of HOTPACK_DEBUG and HOTPACK_OVERCOMMIT.
#pragma once

#include "preload/options.h"

namespace hotpack {

// HOTPACK_DEBUG: `guard`, `guard:BYTES` and `poison`, comma-separated. False, and nothing changed: it is not of that form.
// BYTES: before and after each block, rounded up to 512, at most 1 GiB. No heap, no driver call.
bool ReadDebug(const char* value, Options* options);

// HOTPACK_OVERCOMMIT: `off`, `managed` or `managed:MEBIBYTES`. False, and nothing changed: it is neither.
bool ReadOvercommit(const char* value, Options* options);

// Bytes of managed memory that an arena on a device of `device_bytes` may use: what the option says, else twice the
// device's memory, but no more than half of the host's, where it lies in the end. 0 if the option is off.
uint64_t ManagedLimit(const Options& options, uint64_t device_bytes);

}  // namespace hotpack

// Loads the collector of kernel times; its functions other than notes (preload/collect/collector_host.h).
#pragma once

#include <cstdint>

#include "preload/collect/collector_host.h"

namespace hotpack {

// Loads libhotpack_cupti.so.0 from this library's folder and starts it, if HOTPACK_CUPTI asks for it and there is a
// trace. Logs one line on failure. Call once per process, inside a hook, after the first arena was made, with no lock
// held.
void StartCuptiCollector();

// Makes collectors hand over what they have, because a recording is about to close. Call inside a hook with no lock
// held. May wait for a second or two.
void TellClosing();

// The functions of hotpack_collector_host with these names.
int OnClose(void (*function)());
int64_t PlannedIterations();
uint64_t CuptiIterations();
void EnterHookForEver();

}  // namespace hotpack

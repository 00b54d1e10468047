// Loading the collector of kernel times, and what it asks of us besides notes: see preload/collect/collector_host.h.
#pragma once

#include <cstdint>

#include "preload/collect/collector_host.h"

namespace hotpack {

// Once in the process: if HOTPACK_CUPTI asks for it and there is a trace, loads libhotpack_cupti.so.0 from beside this
// library and starts it; one line if it cannot be. Inside a hook, after the first arena was made, no lock held.
void StartCuptiCollector();

// Some recording is about to close: collectors hand over what they have. Inside a hook, no lock held; may wait for a
// second or two.
void TellClosing();

// The functions of hotpack_collector_host by these names.
int OnClose(void (*function)());
int64_t PlannedIterations();
uint64_t CuptiIterations();
void EnterHookForEver();

}  // namespace hotpack

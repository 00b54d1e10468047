// A step of a job with two streams: each layer is gathered on stream 1 while the one before it is used on stream 0.
#pragma once

#include <cstdint>

#include "runtime/engine/engine.h"

namespace hotpack {

struct LayerBytes {
  uint64_t gathered, activation, temporary;
};

// Plays the step on the engine, marks its end, and waits for the plan. `ask(bytes, stream)` requests a block and
// returns its address. `bytes_of(layer)` returns LayerBytes.
template <typename Ask, typename BytesOf>
void PlayGatheredStep(Engine* engine, uint64_t layers, Ask ask, BytesOf bytes_of) {
  DeviceAddress gathered = ask(bytes_of(0).gathered, 1);
  for (uint64_t layer = 0; layer < layers; ++layer) {
    const LayerBytes bytes = bytes_of(layer);
    const DeviceAddress next = ask(bytes.gathered, 1), activation = ask(bytes.activation, 0);
    const DeviceAddress temporary = ask(bytes.temporary, 0);
    engine->Release(gathered, 1 | kStreamOrdered);
    engine->Release(activation, kStreamOrdered);
    engine->Release(temporary, kStreamOrdered);
    gathered = next;
  }
  engine->Release(gathered, 1 | kStreamOrdered);
  engine->Mark();
  engine->WaitPlan(-1);
}

}  // namespace hotpack

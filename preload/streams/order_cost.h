// What the calling thread has spent on order between streams, for the statistics (StreamOrderCost in
// runtime/engine/engine.h).
#pragma once

#include "runtime/base/request_timer.h"
#include "runtime/engine/engine.h"

namespace hotpack {

// Counts up for ever. Initial-exec: no allocation at the first access.
extern constinit __attribute__((tls_model("initial-exec"))) thread_local StreamOrderCost order_cost;

// Gives the engine's figures what its thread spends while it lives.
class OrderCostScope {
 public:
  explicit OrderCostScope(Engine* engine) : engine_(engine), before_(order_cost), start_(RequestTimer::Now()) {}
  ~OrderCostScope() {
    engine_->NoteStreamOrder({order_cost.waits - before_.waits, order_cost.events - before_.events,
                              order_cost.host_waits - before_.host_waits,
                              static_cast<uint64_t>(RequestTimer::Now() - start_)});
  }
  OrderCostScope(const OrderCostScope&) = delete;
  OrderCostScope& operator=(const OrderCostScope&) = delete;

 private:
  Engine* const engine_;
  const StreamOrderCost before_;
  const int64_t start_;
};

}  // namespace hotpack

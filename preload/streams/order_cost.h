// The calling thread's costs of order between streams, for the statistics (StreamOrderCost in runtime/engine/engine.h).
#pragma once

#include "runtime/base/request_timer.h"
#include "runtime/engine/engine.h"

namespace hotpack {

// Only grows. Initial-exec: the first access allocates nothing.
extern constinit __attribute__((tls_model("initial-exec"))) thread_local StreamOrderCost order_cost;

// Adds the costs of its thread during its life to the engine's figures.
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

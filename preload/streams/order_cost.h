// The calling thread's costs of order between streams, for the statistics (cross_stream* of hotpack_stats).
#pragma once

#include "runtime/base/request_timer.h"
#include "runtime/engine/engine.h"

namespace hotpack {

// What ordering memory after other streams' work on it has cost.
struct StreamOrderCost {
  uint64_t waits = 0;       // streams told to wait for an event
  uint64_t events = 0;      // events recorded
  uint64_t host_waits = 0;  // times the host waited for the device
};

// Only grows. Initial-exec: the first access allocates nothing.
extern constinit __attribute__((tls_model("initial-exec"))) thread_local StreamOrderCost order_cost;

// Adds the costs of its thread during its life to the engine's figures.
class OrderCostScope {
 public:
  // `requests`: 1, or 0 for the costs of a release.
  explicit OrderCostScope(Engine* engine, uint64_t requests = 1)
      : engine_(engine), requests_(requests), before_(order_cost), start_(RequestTimer::Now()) {}
  ~OrderCostScope() {
    engine_->AddTo(&hotpack_stats::cross_stream, requests_);
    engine_->AddTo(&hotpack_stats::cross_stream_waits, order_cost.waits - before_.waits);
    engine_->AddTo(&hotpack_stats::cross_stream_events, order_cost.events - before_.events);
    engine_->AddTo(&hotpack_stats::cross_stream_host_waits, order_cost.host_waits - before_.host_waits);
    engine_->AddTo(&hotpack_stats::cross_stream_ns, static_cast<uint64_t>(RequestTimer::Now() - start_));
  }
  OrderCostScope(const OrderCostScope&) = delete;
  OrderCostScope& operator=(const OrderCostScope&) = delete;

 private:
  Engine* const engine_;
  const uint64_t requests_;
  const StreamOrderCost before_;
  const int64_t start_;
};

}  // namespace hotpack

// The figures of hotpack_stats for the recorded run (docs/statistics.md).

function drawStats(section, into, stats) {
  section.hidden = !stats;
  if (!stats) return;
  const steady = stats.steady_iteration >= 0, size = (bytes) => sizeText(bytes);
  const list = [
    ["served by the plan", percentText(stats.planned, stats.requests) + " of " + plural(stats.requests, "request")],
    ["steady from iteration", steady ? countText(stats.steady_iteration) + " on, of " + countText(stats.iterations) : "none was steady"],
    ["by the plan since then", steady ? percentText(stats.planned_steady, stats.requests_steady) : "–"],
    ["dynamic, displaced", countText(stats.dynamic) + ", " + countText(stats.displaced)],
    ["left to the driver", countText(stats.passed_through)],
    ["live peak", size(stats.live_peak)],
    ["held at most", size(stats.reserved_peak)],
    ["held while served", steady ? size(stats.reserved_steady) : "–"],
    ["plan, and its lower bound", size(stats.plan_height) + ", " + size(stats.plan_lower_bound)],
    ["driver calls a steady iteration", steady ? countText(stats.driver_memory_calls_steady) : "–"],
    ["times off the plan", countText(stats.divergences)],
    ["plans; made anew", countText(stats.plans) + "; " + countText(stats.reoptimizations)],
    ["variants, changes between them", countText(stats.variants) + ", " + countText(stats.switches)],
    ["planning", (stats.planning_ns / 1e6).toFixed(1) + " ms of a thread's time"],
  ];
  if (stats.plan_stream_edges + stats.plan_stream_edges_avoided > 0) {
    list.push(["waits between streams in one cycle", countText(stats.plan_stream_edges) + ", " + countText(stats.plan_stream_edges_avoided) + " avoided"]);
  }
  if (stats.ns_per_request > 0) list.push(["a request served by the plan", countText(stats.ns_per_request) + " ns"]);
  if (stats.checker_reports !== undefined) list.push(["reports of the simulated device's checker", countText(stats.checker_reports)]);
  into.append(pairs(list));
}

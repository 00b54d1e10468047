// Adds nodes to a graph, by capture or explicitly.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "simgpu/driver/api.h"
#include "simgpu/driver/work.h"

namespace simgpu {
namespace {

GraphNode* From(CUgraphNode handle) { return reinterpret_cast<GraphNode*>(handle); }

// Places the node after all its dependencies. Nodes are visited in creation order, so the recursion is only as deep as
// the program reversed that order.
void Arrange(GraphNode* node, std::unordered_set<const GraphNode*>* placed, std::vector<const GraphNode*>* order) {
  if (!placed->insert(node).second) return;
  for (GraphNode* earlier : node->after) Arrange(earlier, placed, order);
  order->push_back(node);
}

// Returns true if `node` is `earlier`, or comes after it by one or more dependencies.
bool ComesAfter(const GraphNode* node, const GraphNode* earlier) {
  std::unordered_set<const GraphNode*> seen;
  std::vector<const GraphNode*> todo = {node};
  while (!todo.empty()) {
    const GraphNode* at = todo.back();
    todo.pop_back();
    if (at == earlier) return true;
    if (seen.insert(at).second) todo.insert(todo.end(), at->after.begin(), at->after.end());
  }
  return false;
}

Graph* FindChild(const Graph& graph, const Graph* wanted) {
  for (const auto& child : graph.children) {
    if (child.get() == wanted) return child.get();
    if (Graph* found = FindChild(*child, wanted)) return found;
  }
  return nullptr;
}

RunWork MemsetWork(const CUDA_MEMSET_NODE_PARAMS& params) {
  return [p = params](Driver& driver, Epoch op, uint64_t) {
    const uint64_t row = p.width * p.elementSize;
    for (size_t y = 0; y < p.height; ++y) {
      driver.checker.Use(op, p.dst + y * p.pitch, row, "a memset in a graph");
      const CUresult status = FillBytes(driver, p.dst + y * p.pitch, &p.value, p.elementSize, row);
      if (status != CUDA_SUCCESS) return status;
    }
    return CUDA_SUCCESS;
  };
}

}  // namespace

Graph* FindGraph(Driver& d, CUgraph handle) {
  const auto it = d.graphs.find(reinterpret_cast<Graph*>(handle));
  if (it != d.graphs.end()) return it->second.get();
  for (const auto& [graph, owned] : d.graphs) {
    if (Graph* child = FindChild(*graph, reinterpret_cast<Graph*>(handle))) return child;
  }
  return nullptr;
}

Graph* FindGraphOrCaptured(Driver& d, CUgraph handle) {
  if (Graph* graph = FindGraph(d, handle); graph != nullptr || handle == nullptr) return graph;
  for (const std::weak_ptr<Capture>& weak : d.captures) {
    const std::shared_ptr<Capture> capture = weak.lock();
    if (capture != nullptr && capture->graph.get() == reinterpret_cast<Graph*>(handle)) return capture->graph.get();
  }
  return nullptr;
}

GraphExec* FindExec(Driver& d, CUgraphExec handle) {
  auto it = d.graph_execs.find(reinterpret_cast<GraphExec*>(handle));
  return it == d.graph_execs.end() ? nullptr : it->second.get();
}

bool ValidDependencies(const Graph& graph, const CUgraphNode* nodes, size_t count) {
  if (count == 0) return true;
  return nodes != nullptr && std::all_of(nodes, nodes + count, [&](CUgraphNode node) {
           return node != nullptr && From(node)->graph == &graph;
         });
}

CUgraphNode Placed(GraphNode* node, const CUgraphNode* dependencies, size_t count) {
  for (size_t i = 0; i < count; ++i) node->after.push_back(From(dependencies[i]));
  return reinterpret_cast<CUgraphNode>(node);
}

GraphNode* AddNode(Graph* graph, CUgraphNodeType type, RunWork run) {
  auto node = std::make_unique<GraphNode>();
  node->type = type;
  node->run = std::move(run);
  node->graph = graph;
  graph->nodes.push_back(std::move(node));
  return graph->nodes.back().get();
}

std::unique_ptr<Graph> CopyGraph(const Graph& from) {
  auto copy = std::make_unique<Graph>();
  std::unordered_map<const GraphNode*, GraphNode*> copies;
  for (const auto& node : from.nodes) {
    GraphNode* added = AddNode(copy.get(), node->type, node->run);
    added->host = node->host;
    added->host_data = node->host_data;
    added->given_before = node->given_before;
    added->copy = node->copy;
    added->context = node->context;
    if (node->child != nullptr) {
      copy->children.push_back(CopyGraph(*node->child));
      added->child = copy->children.back().get();
    }
    copies[node.get()] = added;
  }
  for (const auto& node : from.nodes) {
    for (const GraphNode* earlier : node->after) copies[node.get()]->after.push_back(copies[earlier]);
  }
  return copy;
}

void AddSteps(const Graph& graph, std::vector<GraphExec::Step>* steps) {
  std::unordered_set<const GraphNode*> placed;
  std::vector<const GraphNode*> order;
  for (const auto& node : graph.nodes) Arrange(node.get(), &placed, &order);
  for (const GraphNode* node : order) {
    if (node->child != nullptr) AddSteps(*node->child, steps);
    steps->push_back({node, node->type, node->run, node->host, node->host_data, node->given_before, node->copy});
  }
}

SIMGPU_API cuGraphAddEmptyNode(CUgraphNode* node, CUgraph handle, const CUgraphNode* after, size_t count) {
  SIMGPU_ENTER(cuGraphAddEmptyNode);
  Graph* graph = FindGraph(d, handle);
  if (node == nullptr || graph == nullptr || !ValidDependencies(*graph, after, count)) return CUDA_ERROR_INVALID_VALUE;
  *node = Placed(AddNode(graph, CU_GRAPH_NODE_TYPE_EMPTY, nullptr), after, count);
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphAddHostNode(CUgraphNode* node, CUgraph handle, const CUgraphNode* after, size_t count,
                              const CUDA_HOST_NODE_PARAMS* params) {
  SIMGPU_ENTER(cuGraphAddHostNode);
  Graph* graph = FindGraph(d, handle);
  if (node == nullptr || graph == nullptr || !ValidDependencies(*graph, after, count) || params == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  GraphNode* added = AddNode(graph, CU_GRAPH_NODE_TYPE_HOST, nullptr);
  added->host = params->fn;
  added->host_data = params->userData;
  *node = Placed(added, after, count);
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphAddMemsetNode(CUgraphNode* node, CUgraph handle, const CUgraphNode* after, size_t count,
                                const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  SIMGPU_ENTER(cuGraphAddMemsetNode);
  Graph* graph = FindGraph(d, handle);
  if (node == nullptr || graph == nullptr || !ValidDependencies(*graph, after, count) || params == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  *node = Placed(AddNode(graph, CU_GRAPH_NODE_TYPE_MEMSET, MemsetWork(*params)), after, count);
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph handle, const CUgraphNode* after, size_t count,
                                    CUgraph child) {
  SIMGPU_ENTER(cuGraphAddChildGraphNode);
  Graph* graph = FindGraph(d, handle);
  const Graph* from = FindGraph(d, child);
  if (node == nullptr || graph == nullptr || !ValidDependencies(*graph, after, count) || from == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  std::unique_ptr<Graph> copy = CopyGraph(*from);
  GraphNode* added = AddNode(graph, CU_GRAPH_NODE_TYPE_GRAPH, nullptr);
  added->child = copy.get();
  graph->children.push_back(std::move(copy));
  *node = Placed(added, after, count);
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph* child) {
  SIMGPU_ENTER(cuGraphChildGraphNodeGetGraph);
  if (handle == nullptr || child == nullptr || From(handle)->child == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *child = reinterpret_cast<CUgraph>(From(handle)->child);
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphDestroyNode(CUgraphNode handle) {
  SIMGPU_ENTER(cuGraphDestroyNode);
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Graph* graph = From(handle)->graph;
  std::erase_if(graph->children, [&](const auto& child) { return child.get() == From(handle)->child; });
  for (const auto& node : graph->nodes) std::erase(node->after, From(handle));
  std::erase_if(graph->nodes, [&](const auto& node) { return node.get() == From(handle); });
  return CUDA_SUCCESS;
}

static CUresult AddDependencies(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  SIMGPU_ENTER(cuGraphAddDependencies);
  const Graph* graph = FindGraph(d, handle);
  if (graph == nullptr || !ValidDependencies(*graph, from, count) || !ValidDependencies(*graph, to, count)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < count; ++i) {
    if (ComesAfter(From(from[i]), From(to[i]))) return CUDA_ERROR_INVALID_VALUE;  // a cycle
    From(to[i])->after.push_back(From(from[i]));
  }
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  return AddDependencies(graph, from, to, count);
}
SIMGPU_API cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                     const CUgraphEdgeData*, size_t count) {
  return AddDependencies(graph, from, to, count);
}

}  // namespace simgpu

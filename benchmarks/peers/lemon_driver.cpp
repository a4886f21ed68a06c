// Times LEMON's MaxWeightedPerfectMatching on one graph.
//
// stdin:  int64 n, int64 m, then m times (int64 u, int64 v, int64 weight), native byte order.
// stdout: seconds of the solve alone (the graph is built before), then the partner of every node.
#include <lemon/matching.h>
#include <lemon/smart_graph.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

int main() {
  int64_t size[2];
  if (std::fread(size, sizeof(int64_t), 2, stdin) != 2) return 2;
  lemon::SmartGraph graph;
  graph.reserveNode(size[0]);
  graph.reserveEdge(size[1]);
  for (int64_t k = 0; k < size[0]; ++k) graph.addNode();
  lemon::SmartGraph::EdgeMap<long long> weight(graph);
  std::vector<int64_t> row(3 * 4096);
  for (int64_t left = size[1]; left > 0;) {
    const size_t wanted = left < 4096 ? left : 4096;
    if (std::fread(row.data(), 3 * sizeof(int64_t), wanted, stdin) != wanted) return 2;
    for (size_t k = 0; k < wanted; ++k) {
      auto edge = graph.addEdge(graph.nodeFromId(row[3 * k]), graph.nodeFromId(row[3 * k + 1]));
      weight[edge] = row[3 * k + 2];
    }
    left -= wanted;
  }
  lemon::MaxWeightedPerfectMatching<lemon::SmartGraph, lemon::SmartGraph::EdgeMap<long long>>
      matching(graph, weight);
  const auto started = std::chrono::steady_clock::now();
  const bool found = matching.run();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
  if (!found) return 1;
  std::printf("%.9f\n", seconds.count());
  for (int64_t k = 0; k < size[0]; ++k)
    std::printf("%d\n", graph.id(matching.mate(graph.nodeFromId(k))));
  return 0;
}

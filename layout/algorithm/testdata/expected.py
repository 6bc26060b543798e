"""Writes expected.json: what networkx computes for small graphs with loops and parallel edges."""
import json
import random
import networkx as nx
from networkx.algorithms.link_analysis.pagerank_alg import _pagerank_python

random.seed(7)
N = 40
graphs = []
for undirected in (False, True):
    edges = [[random.randrange(int(N * random.random() ** 1.5) + 1), random.randrange(N - 4)]
             for _ in range(95)]
    edges += [edges[0], [5, 5]]
    if undirected:
        edges = [e for i, e in enumerate(edges) if sorted(e) not in map(sorted, edges[:i])]
    weights = [random.randrange(1, 40) / 4 for _ in edges]
    multi = nx.MultiGraph() if undirected else nx.MultiDiGraph()
    multi.add_nodes_from(range(N))
    for (u, v), w in zip(edges, weights):
        multi.add_edge(u, v, length=w)
    simple = nx.Graph(multi)
    simple.remove_edges_from(list(nx.selfloop_edges(simple)))
    parts = nx.connected_components(multi.to_undirected() if not undirected else multi)
    component = [0] * N
    for i, part in enumerate(sorted(parts, key=min)):
        for v in part:
            component[v] = i
    rank = _pagerank_python(multi, tol=1e-12, max_iter=1000, weight="one")
    graphs.append({
        "undirected": undirected, "nodes": N, "edges": edges, "weights": weights,
        "components": component,
        "pagerank": [rank[v] for v in range(N)],
        "triangles": [nx.triangles(simple)[v] for v in range(N)],
        "cores": [nx.core_number(simple)[v] for v in range(N)],
        "distances": [nx.single_source_shortest_path_length(multi, 0).get(v) for v in range(N)],
        "paths": [nx.single_source_dijkstra_path_length(multi, 0, weight="length").get(v)
                  for v in range(N)],
    })
with open("expected.json", "w") as f:
    json.dump(graphs, f)
    f.write("\n")

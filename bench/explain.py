#!/usr/bin/env python3
"""What gdb explain finds on graphs of which it is known what decides the class.

  bench/explain.py gdb                     # both graphs, 100 nodes of each
  bench/explain.py gdb --nodes 40 --seed 2

houses: 80 houses of 5 nodes and 6 edges hang on a Barabási-Albert graph of 300 nodes, with 40
random edges besides (BA-Shapes of Ying and others, "GNNExplainer", section 5). The class of a node
says where in a house it is; planted are the 6 edges of its house.
signals: each of 1000 nodes has 8 random neighbors and one that carries a signal, a column of 1 or
-1, which is the class of the node; 9 other columns are noise. Planted are the edge to the carrier
and the column.

Found is a node whose planted edges are all among the top 10. Needs Python and the program alone.
"""
import argparse
import collections
import csv
import json
import pathlib
import random
import subprocess
import tempfile


def houses(draw):
    edges, classes, planted = set(), [0] * 300, {}
    ends = []
    for node in range(5, 300):  # each new node has 5 edges to nodes by their degrees
        to = set(range(5)) if node == 5 else set()
        while len(to) < 5:
            to.add(draw.choice(ends))
        for other in to:
            edges.add((other, node))
            ends += [other, node]
    for _ in range(80):
        roof, left, right, below, corner = range(len(classes), len(classes) + 5)
        classes += [1, 2, 2, 3, 3]
        own = [(roof, left), (roof, right), (left, right), (left, below), (right, corner),
               (below, corner)]
        edges.update(own)
        edges.add((draw.randrange(300), left))
        for node in range(roof, corner + 1):
            planted[node] = [frozenset(e) for e in own]
    for _ in range(40):
        a, b = draw.sample(range(len(classes)), 2)
        edges.add((min(a, b), max(a, b)))
    rows = [[1] for _ in classes]
    return edges, classes, rows, planted, None


def signals(draw):
    edges, classes, planted, rows = set(), [], {}, []
    for node in range(1000):
        classes.append(draw.randrange(2))
        rows.append([0])
    for node in range(1000):
        carrier = 1000 + node
        classes.append("")
        rows.append([2 * classes[node] - 1])
        edges.add((carrier, node))
        planted[node] = [frozenset((carrier, node))]
        edges.update((draw.randrange(1000), node) for _ in range(8))
    rows = [r + [round(draw.gauss(0, 1), 3) for _ in range(9)] for r in rows]
    edges = {e for e in edges if e[0] != e[1]}
    return edges, classes, rows, planted, "f0"


def write(folder, graph, draw):
    edges, classes, rows, _, _ = graph
    with open(folder / "edges.csv", "w") as f:
        out = csv.writer(f)
        out.writerow(["src", "dst"])
        out.writerows(f"{a} {b}".split() for a, b in sorted(edges))
    names = [f"f{k}" for k in range(len(rows[0]))]
    with open(folder / "nodes.csv", "w") as f:
        out = csv.writer(f)
        out.writerow(["id", "label", *names])
        for node, (label, row) in enumerate(zip(classes, rows)):
            out.writerow([node, f"class{label}" if label != "" else "", *row])
    return names


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


def measure(args, name, graph, draw, training):
    planted, column = graph[3], graph[4]
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        names = write(folder, graph, draw)
        store = folder / "store"
        both = ["--undirected"] if name == "houses" else []
        run(args.gdb, "ingest", "--edges", folder / "edges.csv", "--nodes", folder / "nodes.csv",
            "--id-col", "id", "--label-col", "label", "--feature-cols", ",".join(names),
            "--split", "random=80/10/10", "--out", store, *both)
        trained = run(args.gdb, "train", store, "--quiet", "--seed", args.seed, *training)
        print(f"{name}: {trained.splitlines()[-1]}")
        tally = collections.Counter()
        nodes = draw.sample(sorted(planted), min(args.nodes, len(planted)))
        for node in nodes:
            e = json.loads(run(args.gdb, "explain", store, "--run", "r0001", "--node", node,
                               "--json"))
            top = [frozenset((int(x["src"]), int(x["dst"]))) for x in e["edges"]]
            hit = sum(edge in top for edge in planted[node])
            tally["hit"] += hit
            tally["planted"] += len(planted[node])
            tally["found"] += hit == len(planted[node])
            tally["edges"] += e["edge_count"]
            if column:
                tally["column"] += e["columns"][0]["name"] == column
            if args.verbose and hit < len(planted[node]):
                print(node, e["prediction"], hit, e["edge_count"], e["confidence"])
        print(f"  {tally['found']} of {len(nodes)} nodes are found, "
              f"{tally['hit'] / tally['planted']:.3f} of the planted edges are among the top 10, "
              f"of {tally['edges'] / len(nodes):.0f} edges")
        if column:
            print(f"  the planted column is the first of {tally['column']} of {len(nodes)} nodes")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gdb", help="the program")
    parser.add_argument("--nodes", type=int, default=100, help="nodes to explain of each graph")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--houses", default="gcn", help="model of the first graph")
    parser.add_argument("--signals", default="sage", help="model of the second graph")
    parser.add_argument("--verbose", action="store_true", help="show what is not found")
    args = parser.parse_args()
    draw = random.Random(args.seed)
    measure(args, "houses", houses(draw), draw,
            ["--model", args.houses, "--fanout", "all,all,all", "--hidden", 32, "--epochs", 600,
             "--batch", 700, "--lr", 0.01, "--dropout", 0, "--eval-every", 5, "--patience", 200])
    measure(args, "signals", signals(draw), draw,
            ["--model", args.signals, "--fanout", "all,all", "--hidden", 32, "--epochs", 30,
             "--batch", 100, "--lr", 0.01, "--dropout", 0])


if __name__ == "__main__":
    main()

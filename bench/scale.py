#!/usr/bin/env python3
"""What a run costs as graphs grow: an epoch is 42 batches of 1000 seeds, fanout 10,10,10, loaded and
not trained on.

    scale.py --gdb GDB --dir DIR [--first 18] [--last 24] [--step 2] [--memory fifth|1GiB]
    scale.py --gdb GDB --dir DIR --graph web-notredame --undirected com-dblp [--last 22] …

The first form makes R-MAT graphs of 2^FIRST to 2^LAST nodes, 16 edges a node. The second takes
sources of real graphs, and expands each by a Kronecker product (gdb bench gen kron) to about 2^LAST
nodes; --undirected is for sources that have each edge once. Their features are
random, and their labels too.

Prints a Markdown table, a row for each graph, and then bars of what a batch takes. Graphs are made
in DIR and removed. --memory fifth is a fifth of the store, 256 MiB at least: less has no room for
such batches. A plan is not kept from one graph to the next, so planning counts;
what a plan knows of the device was measured by the epochs, which come first.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import time

RMAT = ["nodes", "edges", "store", "lists, bytes an edge", "memory", "ingest", "plan", "plan again",
        "before the first epoch", "first epoch", "last epoch", "a batch", "read an epoch", "peak memory"]
REAL = ["graph", "nodes", "edges", "lists, bytes an edge, as it is", "expanded", "store", "memory", "ingest",
        "plan", "system", "before the first epoch", "first epoch", "last epoch", "a batch", "peak memory"]
BATCHES = 42
SEEDS = BATCHES * 1000


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--gdb", required=True)
    p.add_argument("--dir", default=".")
    p.add_argument("--first", type=int, default=18)
    p.add_argument("--last", type=int, default=24)
    p.add_argument("--step", type=int, default=2)
    p.add_argument("--dim", type=int, default=64)
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--memory", default="fifth")
    p.add_argument("--system", default="auto", help="of R-MAT graphs")
    p.add_argument("--graph", action="append", default=[], help="source of a directed graph, repeatable")
    p.add_argument("--undirected", action="append", default=[], help="source of an undirected one, repeatable")
    return p.parse_args()


def size(n):
    for unit in ("B", "KiB", "MiB"):
        if n < 1024:
            return f"{n:.4g} {unit}"
        n /= 1024
    return f"{n:.4g} GiB"


def tree(path):
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(path) for f in files)


def lists(store):
    return sum(os.path.getsize(os.path.join(store, "topology", f)) for f in ("in.csc", "in.idx"))


def run(gdb, *args):
    begun = time.monotonic()
    done = subprocess.run([gdb, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        sys.stderr.buffer.write(done.stderr)
        raise SystemExit(f"{' '.join([gdb, *args])}: exit code {done.returncode}")
    return time.monotonic() - begun, done.stdout


class Bench:
    """A store in the making, and what is measured of it."""

    def __init__(self, a):
        self.a, self.gdb = a, a.gdb
        self.arrays, self.store, self.small = (os.path.join(a.dir, n) for n in ("scale", "scale.gdb", "small.gdb"))
        for path in (self.arrays, self.store, self.small):
            shutil.rmtree(path, ignore_errors=True)

    def ingest(self, *flags):
        fixed = self.a.memory if self.a.memory != "fifth" else "1GiB"
        took, _ = run(self.gdb, "ingest", self.arrays, "--out", self.store, "--memory", fixed, *flags)
        shutil.rmtree(self.arrays)
        self.total = tree(self.store)
        self.memory = self.a.memory
        if self.memory == "fifth":
            self.memory = f"{max(self.total // 5, 256 << 20) >> 20}MiB"
        self.flags = ["--memory", self.memory, "--fanout", "10,10,10", "--batch", "1000", "--epochs",
                      str(self.a.epochs)]
        return took

    def train(self, systems):
        _, out = run(self.gdb, "bench", "train", self.store, "--systems", systems, "--model", "none", *self.flags,
                     "--json")
        rows = json.loads(out)["rows"]
        for r in rows:
            if not r.get("epochs"):
                raise SystemExit(f"{self.store}: {r.get('why')}")
        return rows

    def plan(self):
        return run(self.gdb, "plan", self.store, "--hidden", "16", *self.flags)[0]

    def batch(self, r):
        return r["total_s"] / (r["batches"] * self.a.epochs)


def write_labels(path, nodes):
    """Writes an array of a class for each node, by turns: what is trained must have labels."""
    with open(path, "wb") as f:
        head = "{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }" % nodes
        f.write(b"\x93NUMPY\x01\x00\x76\x00" + head.ljust(117).encode() + b"\n")
        classes = bytes(range(47)) * (1 << 14)
        for first in range(0, nodes, len(classes)):
            f.write(classes[:nodes - first])


def seconds(r):
    return [f"{r['open_s']:.1f} s", f"{r['epochs'][0]['epoch_s']:.1f} s", f"{r['last_epoch_s']:.1f} s"]


def line(cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def rmat(a, scale):
    b = Bench(a)
    nodes, edges = 1 << scale, 16 << scale
    run(a.gdb, "bench", "gen", "rmat", "--scale", str(scale), "--edges", str(edges), "--dim", str(a.dim),
        "--classes", "47", "--train-frac", repr(SEEDS / nodes), "--out", b.arrays)
    ingest = b.ingest()
    each, r = lists(b.store) / edges, b.train(a.system)[0]
    plan, again = b.plan(), b.plan()
    shutil.rmtree(b.store)
    line([f"{nodes:,}", f"{edges:,}", size(b.total), f"{each:.2f}", b.memory, f"{ingest:.1f} s", f"{plan:.1f} s",
          f"{again:.1f} s", *seconds(r), f"{1e3 * b.batch(r):.0f} ms", size(r["bytes_read"]),
          size(r.get("cgroup_peak_bytes") or r["peak_rss_bytes"])])
    return f"2^{scale}", b.batch(r)


def real(a, source, undirected):
    b = Bench(a)
    run(a.gdb, "ingest", source, "--out", b.small, *(["--undirected"] if undirected else []))
    info = json.loads(run(a.gdb, "info", b.small, "--json")[1])
    small = lists(b.small) / info["edges"]
    factor = max(2, round((1 << a.last) / info["nodes"]))
    run(a.gdb, "bench", "gen", "kron", "--in", b.small, "--factor", str(factor), "--out", b.arrays)
    shutil.rmtree(b.small)
    nodes = info["nodes"] * factor
    write_labels(os.path.join(b.arrays, "labels.npy"), nodes)
    ingest = b.ingest("--features", f"random:{a.dim}", "--split", f"random={100 * SEEDS / nodes}/0/0")
    info = json.loads(run(a.gdb, "info", b.store, "--json")[1])
    large, rows, plan = lists(b.store) / info["edges"], b.train("auto,static"), b.plan()
    shutil.rmtree(b.store)
    name = os.path.basename(os.path.normpath(source))
    for r in rows:
        line([f"{name} x {factor}", f"{info['nodes']:,}", f"{info['edges']:,}", f"{small:.2f}", f"{large:.2f}",
              size(b.total), b.memory, f"{ingest:.1f} s", f"{plan:.1f} s", f"`{r['system']}`", *seconds(r),
              f"{1e3 * b.batch(r):.0f} ms", size(r.get("cgroup_peak_bytes") or r["peak_rss_bytes"])])
    return name, b.batch(rows[0])


def main():
    a = arguments()
    graphs = [(g, False) for g in a.graph] + [(g, True) for g in a.undirected]
    columns = REAL if graphs else RMAT
    line(columns)
    print("|" + "--:|" * len(columns), flush=True)
    if graphs:
        rows = [real(a, source, undirected) for source, undirected in graphs]
    else:
        rows = [rmat(a, scale) for scale in range(a.first, a.last + 1, a.step)]
    most = max(batch for _, batch in rows)
    print("\nSeconds a batch, all that comes before the first included:\n")
    for name, batch in rows:
        print(f"    {name:14}  {'#' * max(1, round(50 * batch / most)):50}  {batch:.3f}")


main()

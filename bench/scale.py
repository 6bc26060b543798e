#!/usr/bin/env python3
"""What a run costs as graphs grow: R-MAT graphs of 2^FIRST to 2^LAST nodes, 16 edges and some features
a node, 42 batches of 1000 seeds an epoch, fanout 10,10,10, loaded and not trained on.

    scale.py --gdb GDB --dir DIR [--first 18] [--last 24] [--step 2] [--memory fifth|1GiB]

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
import time

COLUMNS = ["nodes", "edges", "store", "lists, bytes an edge", "memory", "ingest", "plan", "plan again",
           "before the first epoch", "first epoch", "last epoch", "a batch", "read an epoch",
           "peak memory"]


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
    p.add_argument("--system", default="auto")
    return p.parse_args()


def size(n):
    for unit in ("B", "KiB", "MiB"):
        if n < 1024:
            return f"{n:.4g} {unit}"
        n /= 1024
    return f"{n:.4g} GiB"


def tree(path):
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(path) for f in files)


def run(gdb, *args):
    begun = time.monotonic()
    out = subprocess.run([gdb, *args], check=True, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL).stdout
    return time.monotonic() - begun, out


def row(a, scale):
    arrays, store = os.path.join(a.dir, "scale"), os.path.join(a.dir, "scale.gdb")
    nodes, edges = 1 << scale, 16 << scale
    for path in (arrays, store):
        shutil.rmtree(path, ignore_errors=True)
    run(a.gdb, "bench", "gen", "rmat", "--scale", str(scale), "--edges", str(edges), "--dim", str(a.dim),
        "--classes", "47", "--train-frac", repr(42000 / nodes), "--out", arrays)
    fixed = a.memory if a.memory != "fifth" else "1GiB"
    ingest, _ = run(a.gdb, "ingest", arrays, "--out", store, "--memory", fixed)
    shutil.rmtree(arrays)
    lists = sum(os.path.getsize(os.path.join(store, "topology", f)) for f in ("in.csc", "in.idx"))
    total = tree(store)
    memory = a.memory if a.memory != "fifth" else f"{max(total // 5, 256 << 20) >> 20}MiB"
    flags = ["--memory", memory, "--fanout", "10,10,10", "--batch", "1000", "--epochs", str(a.epochs)]
    _, out = run(a.gdb, "bench", "train", store, "--systems", a.system, "--model", "none", *flags, "--json")
    plan, _ = run(a.gdb, "plan", store, "--hidden", "16", *flags)
    again, _ = run(a.gdb, "plan", store, "--hidden", "16", *flags)
    r = json.loads(out)["rows"][0]
    shutil.rmtree(store)
    if not r.get("epochs"):
        raise SystemExit(f"scale {scale}: {r.get('why')}")
    first, last = r["epochs"][0]["epoch_s"], r["last_epoch_s"]
    batch = r["total_s"] / (r["batches"] * a.epochs)
    cells = [f"{nodes:,}", f"{edges:,}", size(total), f"{lists / edges:.2f}", memory, f"{ingest:.1f} s",
             f"{plan:.1f} s", f"{again:.1f} s", f"{r['open_s']:.1f} s", f"{first:.1f} s", f"{last:.1f} s",
             f"{1e3 * batch:.0f} ms", size(r["bytes_read"]), size(r["peak_rss_bytes"])]
    print("| " + " | ".join(cells) + " |", flush=True)
    return scale, batch


def main():
    a = arguments()
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + "--:|" * len(COLUMNS), flush=True)
    rows = [row(a, scale) for scale in range(a.first, a.last + 1, a.step)]
    most = max(batch for _, batch in rows)
    print("\nSeconds a batch, all that comes before the first included:\n")
    for scale, batch in rows:
        print(f"    2^{scale}  {'#' * max(1, round(50 * batch / most)):50}  {batch:.3f}")


main()

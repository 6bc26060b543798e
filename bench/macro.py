#!/usr/bin/env python3
"""Test figures of macro-batches beside exact sampling.

    python3 bench/macro.py --gdb ./gdb --work DIR SOURCE [--seeds 5] [--models sage,gat] -- FLAGS

SOURCE is what gdb ingest takes, with labels and splits. It is ingested in both directions, once as it
is, once in partitions by chance, and ordered by gap. FLAGS are those of gdb train for all. Each row
is the mean and the standard deviation over seeds: exact, then a part of the partitions in memory,
of gap with hubs and without, by chance, and of gap with hubs by pbs.
"""
import argparse
import json
import os
import statistics
import subprocess


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def stores(args):
    """Makes the stores that are not there yet, and returns their paths."""
    name = os.path.join(args.work, os.path.basename(args.source.rstrip("/")))
    exact, chance, gap = (name + "-" + kind + ".gdb" for kind in ("exact", "random", "gap"))
    parts = ["--partitions", str(args.partitions)]
    ingest = [args.gdb, "ingest", args.source, "--undirected", "--quiet"]
    if not os.path.exists(exact):
        run(*ingest, "--out", exact)
    if not os.path.exists(chance):
        run(*ingest, "--partitioner", "random", *parts, "--out", chance)
    if not os.path.exists(gap):
        run(args.gdb, "order", exact, "--quiet", "--restream", "4", *parts, "--out", gap)
    return exact, chance, gap


def test(args, store, seed, flags):
    """Returns the test figure of a run, which it removes."""
    out = run(args.gdb, "train", store, "--json", "--quiet", "--seed", str(seed), *args.flags, *flags)
    done = json.loads(out.splitlines()[-1])
    run(args.gdb, "runs", store, "rm", done["run"])
    return done["test"]


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--gdb", default="./gdb")
    p.add_argument("--work", required=True)
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--partitions", type=int, default=64)
    p.add_argument("--models", default="sage")
    p.add_argument("source")
    p.add_argument("flags", nargs="*")
    args = p.parse_args()
    exact, chance, gap = stores(args)
    for model in args.models.split(","):
        rows = [("exact", exact, [])]
        for share in (8, 16):
            macro = ["--strategy", "macro", "--partitions-in-memory",
                     str(max(1, args.partitions // share))]
            rows += [(f"1/{share}, gap and hubs", gap, macro),
                     (f"1/{share}, gap", gap, macro + ["--hubs", "0"]),
                     (f"1/{share}, by chance", chance, macro + ["--hubs", "0"]),
                     (f"1/{share}, gap, pbs", gap, ["--strategy", "pbs", *macro[2:]])]
        for name, store, flags in rows:
            all = [test(args, store, s, ["--model", model] + flags)
                   for s in range(1, args.seeds + 1)]
            print(f"{model:5} {name:18} {statistics.mean(all):.4f} ± {statistics.pstdev(all):.4f}",
                  flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Queries of gdb beside DuckDB, Kuzu and Ladybug on the same tables: whether all answer the same, and how long each takes.

    query.py --gdb ./gdb --work DIR soc-epinions1 ldbc-snb-sample [--systems gdb,duckdb,kuzu] [--runs 5] [--limit 60] ...

A graph is a directory of edges.npy, (E,2), or the LDBC sample of edges_typed.npy. Each system loads it once into --work, with
--threads threads, and asks each statement once before it is timed: all are warm. A figure is the median of --runs. gdb is timed
through the pipe of its shell with all rows as JSON, packages around execute and fetch. A statement that takes longer than
--limit is ended and said so. Past the table stand answers that differ, the geometric mean of gdb's times by those of the best
other system, and the worst ratio.
"""
import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import engines
import statements


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("graphs", nargs="+", type=Path)
    p.add_argument("--gdb", default="gdb", help="the binary")
    p.add_argument("--work", type=Path, required=True, help="where the systems keep their data")
    p.add_argument("--systems", default="gdb,duckdb,kuzu", help="of " + ",".join(engines.SYSTEMS))
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--memory", default="1GiB", help="of gdb")
    p.add_argument("--runs", type=int, default=5)
    p.add_argument("--limit", type=float, default=60, help="seconds of a statement")
    p.add_argument("--only", default="", help="statements whose name has this")
    p.add_argument("--keep", action="store_true", help="ask what --work has, without loading")
    p.add_argument("--json", type=Path, help="a file for the figures")
    return p.parse_args()


def missing(system, gdb):
    """Why a system is not there, or nothing."""
    if system == "gdb":
        command = [gdb, "--version"]
    else:
        command = [sys.executable, "-c", f"import {system}; print({system}.__version__)"]
    try:
        got = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        return str(error)
    print(f"# {system}: {(got.stdout or got.stderr).strip().splitlines()[-1]}")
    return got.returncode and "not installed"


def prepared(args, path, systems):
    """The statements of a graph, and systems that have loaded it."""
    typed = (path / "edges_typed.npy").exists()
    graph = (engines.ldbc if typed else engines.plain)(path)
    dir = args.work / graph.name
    if not args.keep:
        graph.write(dir)
    peers = {}
    for system in systems:
        peers[system] = engines.Gdb(dir, args.threads, args.memory, args.gdb) if system == "gdb" else \
            engines.Package(system, dir, args.threads)
        if args.keep:
            continue
        begun = time.perf_counter()
        peers[system].load(graph, dir)
        if typed and system == "duckdb":
            for view in statements.LDBC_VIEWS:
                peers[system].ask(view, args.limit)
        print(f"# {graph.name}: {system} loads in {time.perf_counter() - begun:.1f} s", flush=True)
    if not typed:
        return list(statements.plain(*ends(graph))), peers
    return [*statements.lsqb(), *statements.reads(*known(graph))], peers


def ends(graph):
    """The node of most edges out, and three pairs of nodes, of which the first is reached by a walk."""
    edges = graph.edges["node", "edge", "node"]
    src, dst = edges["src"].to_numpy(), edges["dst"].to_numpy()
    ids, counts = np.unique(src, return_counts=True)
    draw = np.random.default_rng(1)
    return int(ids[counts.argmax()]), [(int(draw.choice(src)), int(draw.choice(dst))) for _ in range(3)]


def known(graph):
    """The person who knows most, the first one, and the message with most replies."""
    knows = graph.edges["Person", "knows", "Person"]
    replies = graph.edges["Comment", "replyOf", "Post"]
    most = [np.unique(np.concatenate([c.to_numpy() for c in columns]), return_counts=True)
            for columns in ((knows["src"], knows["dst"]), (replies["dst"],))]
    person, message = (int(ids[counts.argmax()]) for ids, counts in most)
    return person, int(graph.nodes["Person"]["id"][0].as_py()), message


def plainly(rows, ordered):
    """Rows that compare: numbers as floats of nine digits without -0, in order of their text unless they are ordered."""
    rows = [[float(f"{v:.9g}") + 0.0 if isinstance(v, (int, float)) and not isinstance(v, bool) else v for v in row] for row in rows]
    return rows if ordered else sorted(rows, key=repr)


def timed(peer, text, args):
    """The rows of a statement, and the median of its seconds."""
    rows, first = peer.ask(text, args.limit)
    runs = args.runs if first * args.runs < 2 * args.limit else 1
    return rows, statistics.median(peer.ask(text, args.limit)[1] for _ in range(runs))


def figure(row, system):
    at = row["seconds"].get(system)
    return f"{1000 * at:.1f}" if at is not None else row["failed"].get(system, "")[:40]


def measure(args, statement, peers):
    row = {"statement": statement.name, "seconds": {}, "failed": {}, "answers": {}}
    for system, peer in peers.items():
        if statement.text(system) is None:
            continue
        try:
            rows, row["seconds"][system] = timed(peer, statement.text(system), args)
            row["answers"][system] = plainly(rows, statement.ordered)
        except engines.Failed as error:
            row["failed"][system] = str(error)
    others = [s for name, s in row["seconds"].items() if name != "gdb"]
    if others and "gdb" in row["seconds"]:
        row["ratio"] = row["seconds"]["gdb"] / min(others)
    row["agree"] = len({json.dumps(a) for a in row["answers"].values()}) < 2
    return row


def report(rows, systems):
    """The table of a graph, as Markdown."""
    print(f"\n| {rows[0]['graph']}, ms | {' | '.join(systems)} | gdb / best |\n|---|{'--:|' * (len(systems) + 1)}")
    for row in rows:
        ratio = f"{row['ratio']:.2f}" if "ratio" in row else ""
        print(f"| {row['statement']} | {' | '.join(figure(row, s) for s in systems)} | {ratio} |")
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"\ngeometric mean {mean:.2f}, worst {max(ratios):.2f}, of {len(ratios)} of {len(rows)} statements")
    for row in rows:
        if not row["agree"]:
            print(f"DIFFERENT: {row['statement']}: " + "; ".join(f"{s} {str(a)[:120]}" for s, a in row["answers"].items()))


def main():
    args = arguments()
    args.work.mkdir(parents=True, exist_ok=True)
    systems = []
    for system in args.systems.split(","):
        if why := missing(system, args.gdb):
            print(f"# {system} is left out: {why}")
        else:
            systems.append(system)
    every = []
    for path in args.graphs:
        asked, peers = prepared(args, path, systems)
        rows = [measure(args, s, peers) | {"graph": path.name} for s in asked if args.only in s.name]
        report(rows, systems)
        for system, peer in peers.items():
            print(f"# {system}: peak of memory {peer.peak() / (1 << 20):.0f} MiB")
            peer.close()
        every += rows
    if args.json:
        args.json.write_text(json.dumps(every, indent=1))
    sys.exit(not all(row["agree"] for row in every))


if __name__ == "__main__":
    main()
